import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";

/** A PgBouncer in front of a server, until it is stopped. */
export interface RunningPgBouncer {
  readonly url: string;
  /** The version that it reports. */
  readonly version: string;
  stop(): Promise<void>;
}

/** How long it may take to answer, and the time between checks, in milliseconds. */
const maxStartMs = 10_000;
const intervalMs = 50;

/** Starts PgBouncer on a free port, in transaction mode, with this many connections to the server. */
export async function startPgBouncer({
  server,
  connections,
}: {
  readonly server: string;
  readonly connections: number;
}): Promise<RunningPgBouncer> {
  const version = readVersion();
  const folder = mkdtempSync(join(tmpdir(), "tollgate-pgbouncer-"));
  const port = await freePort();
  const file = join(folder, "pgbouncer.ini");
  writeFileSync(file, configuration(new URL(server), port, connections));
  chmodSync(folder, 0o755);
  // PgBouncer refuses to run as root.
  const isRoot = process.getuid?.() === 0;
  const child = spawn("pgbouncer", ["-q", ...(isRoot ? ["-u", "nobody"] : []), file], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  const url = new URL(server);
  url.port = String(port);
  await untilReady(child, url.href);
  return {
    url: url.href,
    version,
    async stop() {
      const exited = once(child, "exit");
      child.kill("SIGKILL");
      await exited;
      rmSync(folder, { recursive: true });
    },
  };
}

function configuration({ hostname, port, username }: URL, listen: number, connections: number) {
  return `[databases]
* = host=${hostname} port=${port} user=${username}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${listen}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = ${connections}
max_client_conn = 200
`;
}

function readVersion(): string {
  try {
    return execFileSync("pgbouncer", ["--version"]).toString().split("\n")[0] ?? "";
  } catch (error) {
    throw new Error("PgBouncer cannot be started; on Debian: apt-get install pgbouncer", {
      cause: error,
    });
  }
}

async function untilReady(child: ChildProcess, url: string): Promise<void> {
  for (let waited = 0; ; waited += intervalMs) {
    const client = new pg.Client(url);
    client.on("error", () => {});
    const failure = await client.connect().then(
      () => null,
      (error: unknown) => error,
    );
    await client.end();
    if (failure === null) return;
    if (child.exitCode !== null || waited > maxStartMs)
      throw new Error("PgBouncer did not start", { cause: failure });
    await pause(intervalMs);
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  if (address === null || typeof address === "string") throw new Error("no port is free");
  return address.port;
}
