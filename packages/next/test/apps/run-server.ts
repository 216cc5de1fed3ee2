import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { createInterface } from "node:readline";

const maxStartMs = 60_000;
const maxStopMs = 10_000;

/** A server in its own process group. */
export interface RunningServer {
  readonly url: string;
  /** Stops the server and every process it has started. */
  stop(): Promise<void>;
}

/** Finds a free port: the server of a standalone folder cannot choose one itself. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("No free port found.");
  return address.port;
}

/** Starts a Node program in a folder, with its port in `PORT`, and waits until it reports that it is ready. */
export async function runServer(
  folder: string,
  words: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): Promise<RunningServer> {
  const port = await freePort();
  const { NODE_ENV: _, ...inherited } = process.env;
  const child = spawn(process.execPath, words, {
    cwd: folder,
    env: { ...inherited, HOSTNAME: "127.0.0.1", PORT: String(port), ...environment },
    stdio: ["ignore", "pipe", "inherit"],
    detached: true,
  });
  const exited = once(child, "exit");
  const signal = (name: NodeJS.Signals): void => {
    if (child.pid === undefined) return;
    try {
      process.kill(-child.pid, name);
    } catch {
      // The whole group has ended.
    }
  };
  const stop = async (): Promise<void> => {
    const late = setTimeout(() => signal("SIGKILL"), maxStopMs);
    signal("SIGTERM");
    await exited;
    clearTimeout(late);
    signal("SIGKILL");
  };
  const expired = setTimeout(() => signal("SIGKILL"), maxStartMs);
  let ready = false;
  for await (const line of createInterface({ input: child.stdout })) {
    ready = /\bReady in\b/.test(line);
    if (ready) break;
  }
  clearTimeout(expired);
  if (!ready) throw new Error(`node ${words.join(" ")} did not start.`);
  child.stdout.resume();
  return { url: `http://127.0.0.1:${port}`, stop };
}
