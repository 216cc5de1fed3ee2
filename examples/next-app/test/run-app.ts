import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

const longestStartMs = 30_000;
const longestStopMs = 10_000;

/** The built app, in a separate process. */
export interface RunningApp {
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts the built app on a free port, with a new database. */
export async function runApp(folder: string, database: string): Promise<RunningApp> {
  const child = spawn(
    process.execPath,
    ["node_modules/next/dist/bin/next", "start", "--hostname", "127.0.0.1", "--port", "0"],
    {
      cwd: folder,
      env: { ...process.env, NEXT_TELEMETRY_DISABLED: "1", TOLLGATE_DATABASE: database },
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  const exited = once(child, "exit");
  const expired = setTimeout(() => child.kill("SIGKILL"), longestStartMs);
  let url: string | undefined;
  for await (const line of createInterface({ input: child.stdout })) {
    url = /http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0];
    if (url !== undefined) break;
  }
  clearTimeout(expired);
  if (url === undefined) throw new Error("`next start` printed no address.");
  child.stdout.resume();
  return {
    url,
    async stop() {
      const late = setTimeout(() => child.kill("SIGKILL"), longestStopMs);
      child.kill("SIGTERM");
      await exited;
      clearTimeout(late);
    },
  };
}
