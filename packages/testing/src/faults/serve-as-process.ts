import { isMessage, type ProcessCommand, type ProcessEvent } from "./process-messages.ts";

const toProcess = { start: true, command: true, release: true } as const;

/** A gateway that runs in this process. */
export interface ServedProcess {
  readonly url: string;
  /** Commands for its test, by name. Values and results are JSON. */
  readonly commands?: Readonly<Record<string, (value: unknown) => unknown>>;
  close(): Promise<void>;
}

/** Waits until the test releases the barrier. */
export type ReachBarrier = (name: string) => Promise<void>;

/**
 * The process's side of `spawnGateway`: opens a gateway with the test's settings and reports its address. SIGTERM closes
 * the gateway and ends the process. The end of the test's process ends it too.
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
    if (command === undefined) throw new Error(`Unknown command: ${name}.`);
    send({ type: "answered", id, value: (await command(value)) ?? null });
  } catch (error) {
    send({ type: "failed", id, message: String(error) });
  }
}

function send(message: ProcessEvent): void {
  process.send?.(message);
}
