import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const maxStartMs = 20_000;

/** An example that listens, in a separate process. */
export interface RunningExample {
  readonly url: string;
  /** The key it printed. */
  readonly secret: string;
  /** Asks it to stop, as a supervisor would, and returns its exit code. */
  stop(): Promise<number | null>;
}

/** Runs the command of `npm start` in a folder, on a free port unless one is given. */
export function startExample(
  folder: string,
  port = 0,
  errors: "inherit" | "pipe" = "inherit",
): ChildProcess {
  const manifest = JSON.parse(readFileSync(`${folder}/package.json`, "utf8")) as {
    readonly scripts: { readonly start: string };
  };
  const [command = "", ...words] = manifest.scripts.start.split(" ");
  return spawn(command, words, {
    cwd: folder,
    env: { ...process.env, PORT: String(port) },
    stdio: ["ignore", "pipe", errors],
  });
}

/** Starts an example that listens, and waits until it prints its address. */
export async function runServer(folder: string): Promise<RunningExample> {
  const child = startExample(folder);
  const expired = setTimeout(() => child.kill("SIGKILL"), maxStartMs);
  const printed = await firstLine(child);
  clearTimeout(expired);
  const url = /http:\/\/127\.0\.0\.1:\d+/.exec(printed)?.[0];
  const secret = /\btg_[0-9A-Za-z]{49}\b/.exec(printed)?.[0];
  if (url === undefined || secret === undefined)
    throw new Error(`The example printed no address and key: ${printed}`);
  return {
    url,
    secret,
    async stop() {
      if (child.exitCode === null && child.signalCode === null) {
        const exited = once(child, "exit");
        child.kill("SIGTERM");
        await exited;
      }
      return child.exitCode;
    },
  };
}

async function firstLine({ stdout }: ChildProcess): Promise<string> {
  if (stdout === null) throw new Error("The example has no standard output.");
  for await (const line of createInterface({ input: stdout })) return line;
  throw new Error("The example ended before it printed anything.");
}
