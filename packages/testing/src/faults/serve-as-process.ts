import { isMessage, type ProcessCommand, type ProcessEvent } from "./process-messages.ts";

const toProcess = { start: true, command: true, release: true } as const;

/** A gateway as its process sees it. */
export interface ServedProcess {
  readonly url: string;
  /** What its test can ask for by name; values and results are JSON. */
  readonly commands?: Readonly<Record<string, (value: unknown) => unknown>>;
  close(): Promise<void>;
}

/** Stands still until the test releases the barrier. */
export type ReachBarrier = (name: string) => Promise<void>;

/**
 * The process's side of `spawnGateway`: opens a gateway with the test's settings and says where it listens. SIGTERM
 * closes it and ends the process; so does the end of the test's own process.
 */
export function serveAsProcess(
  open: (settings: unknown, reach: ReachBarrier) => Promise<ServedProcess>,
): void {
  const released = new Map<string, () => void>();
  let served: ServedProcess | null = null;

  const reach: ReachBarrier = (name) =>
    new Promise((resolve) => {
      released.set(name, resolve);
      send({ type: "reached", barrier: name });
    });
  const start = async (settings: unknown): Promise<void> => {
    served = await open(settings, reach);
    send({ type: "listening", url: served.url });
  };
  const handle = (message: ProcessCommand): void => {
    if (message.type === "start") void start(message.settings);
    else if (message.type === "release") released.get(message.barrier)?.();
    else void answer(message, served);
  };

  process.on("message", (message: unknown) => {
    if (isMessage<ProcessCommand>(message, toProcess)) handle(message);
  });
  process.on("disconnect", () => process.exit(1));
  process.once("SIGTERM", async () => {
    await served?.close();
    process.exit(0);
  });
}

async function answer(
  { id, name, value }: Extract<ProcessCommand, { type: "command" }>,
  served: ServedProcess | null,
): Promise<void> {
  try {
    const command = served?.commands?.[name];
    if (command === undefined) throw new Error(`There is no command ${name}.`);
    send({ type: "answered", id, value: (await command(value)) ?? null });
  } catch (error) {
    send({ type: "failed", id, message: String(error) });
  }
}

function send(message: ProcessEvent): void {
  process.send?.(message);
}
