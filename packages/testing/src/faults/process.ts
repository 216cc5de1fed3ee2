import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { isMessage, type ProcessCommand, type ProcessEvent } from "./process-messages.ts";

/** A gateway in its own process, controlled with signals and barriers. */
export interface GatewayProcess {
  /** Its address. */
  readonly url: string;
  /** Runs one of the process's commands and returns its result. */
  command(name: string, value?: unknown): Promise<unknown>;
  /** Resolves when the process reaches this barrier. */
  reached(barrier: string): Promise<void>;
  /** Lets the process continue from the barrier. */
  release(barrier: string): void;
  /** SIGKILL; resolves when the process is gone. */
  kill(): Promise<void>;
  /** SIGSTOP and SIGCONT. */
  pause(): void;
  resume(): void;
  /** SIGTERM; resolves with the exit code when the process has exited. */
  stop(): Promise<number | null>;
}

const maxStartMs = 30_000;
const fromProcess = { listening: true, reached: true, answered: true, failed: true } as const;

/**
 * Starts a script that calls `serveAsProcess`, and resolves when it listens. The process gets the `--conditions=…` of
 * this process, and ends with it.
 * @throws Error if the script doesn't listen within 30 seconds, or exits before
 */
export async function spawnGateway(script: URL, settings: unknown): Promise<GatewayProcess> {
  const conditions = process.execArgv.filter((flag) => flag.startsWith("--conditions="));
  const child = spawn(process.execPath, [...conditions, "--no-warnings", fileURLToPath(script)], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  const channel = openChannel(child);
  const expired = setTimeout(() => child.kill("SIGKILL"), maxStartMs);
  channel.send({ type: "start", settings });
  const url = await channel.listening.finally(() => clearTimeout(expired));
  const exit = async (signal: NodeJS.Signals): Promise<void> => {
    child.kill(signal);
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  };
  return {
    url,
    command: channel.command,
    reached: channel.reached,
    release: (barrier) => channel.send({ type: "release", barrier }),
    kill: () => exit("SIGKILL"),
    pause: () => void child.kill("SIGSTOP"),
    resume: () => void child.kill("SIGCONT"),
    async stop() {
      await exit("SIGTERM");
      return child.exitCode;
    },
  };
}

interface Channel extends Pick<GatewayProcess, "command" | "reached"> {
  readonly listening: Promise<string>;
  send(message: ProcessCommand): void;
}

function openChannel(child: ChildProcess): Channel {
  const listening = Promise.withResolvers<string>();
  const barriers = new Map<string, PromiseWithResolvers<void>>();
  const answers = new Map<number, PromiseWithResolvers<unknown>>();
  let commands = 0;
  let ended: Error | null = null;

  const handle = (message: ProcessEvent): void => {
    if (message.type === "listening") listening.resolve(message.url);
    else if (message.type === "reached") barrierOf(barriers, message.barrier).resolve();
    else if (message.type === "answered") answers.get(message.id)?.resolve(message.value);
    else answers.get(message.id)?.reject(new Error(message.message));
  };
  const send = (message: ProcessCommand): void => {
    if (child.connected) child.send(message, () => {});
  };
  child.on("message", (message: unknown) => {
    if (isMessage<ProcessEvent>(message, fromProcess)) handle(message);
  });
  child.on("exit", (code, signal) => {
    ended = new Error(`The gateway process ended (${signal ?? code}).`);
    listening.reject(ended);
    for (const waiting of [...barriers.values(), ...answers.values()]) waiting.reject(ended);
  });

  return {
    listening: listening.promise,
    send,
    reached: (barrier) => barrierOf(barriers, barrier).promise,
    command(name, value = null) {
      if (ended !== null) return Promise.reject(ended);
      const id = ++commands;
      const answer = Promise.withResolvers<unknown>();
      answers.set(id, answer);
      send({ type: "command", id, name, value });
      return answer.promise.finally(() => answers.delete(id));
    },
  };
}

function barrierOf(
  barriers: Map<string, PromiseWithResolvers<void>>,
  name: string,
): PromiseWithResolvers<void> {
  const known = barriers.get(name) ?? Promise.withResolvers<void>();
  known.promise.catch(() => {});
  barriers.set(name, known);
  return known;
}
