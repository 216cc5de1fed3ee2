import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Cluster } from "./cluster.ts";

/** A server that accepts connections. */
export interface ServerProcess {
  stop(mode: "immediate" | "fast"): Promise<void>;
}

const maxStartMs = 30_000;
const intervalMs = 25;
/** The first byte that a server sends if it accepts a session. */
const authenticates = 0x52;
const startupMessage = (() => {
  const text = Buffer.from("user\0postgres\0database\0postgres\0\0");
  const head = Buffer.alloc(8);
  head.writeInt32BE(head.length + text.length, 0);
  // Version 3.0 of the protocol.
  head.writeInt32BE(196_608, 4);
  return Buffer.concat([head, text]);
})();
const signals = { immediate: "SIGQUIT", fast: "SIGINT" } as const;

/** The shell stops the server when its standard input closes, so even a killed test run leaves no server behind. */
const watched =
  '"$@" <&- & pid=$!; cat >/dev/null; kill -INT "$pid" 2>/dev/null; wait "$pid"; exit 0';

/** Starts a cluster's server. Resolves when it accepts connections. */
export async function startServer(cluster: Cluster): Promise<ServerProcess> {
  const { program, parameters, environment } = cluster;
  const shell = spawn("/bin/sh", ["-c", watched, "sh", program, ...parameters], {
    ...environment,
    stdio: ["pipe", "ignore", "pipe"],
  });
  const exited = once(shell, "exit");
  const log = keepLog(shell);
  for (let waited = 0; !(await answers(cluster.port)); waited += intervalMs) {
    if (shell.exitCode !== null || waited > maxStartMs)
      throw new Error(`PostgreSQL did not start:\n${log()}`);
    await pause(intervalMs);
  }
  return {
    async stop(mode) {
      const pid = pidOf(cluster);
      // A server with a full disk may have exited already.
      if (pid !== null && isAlive(pid)) process.kill(pid, signals[mode]);
      if (pid !== null) await untilGone(pid);
      shell.stdin.end();
      await exited;
    },
  };
}

/** Returns the server's process id, or null without a pid file. */
function pidOf({ folder }: Cluster): number | null {
  const file = join(folder, "data", "postmaster.pid");
  return existsSync(file) ? Number(readFileSync(file, "utf8").split("\n")[0]) : null;
}

/** Keeps the end of the server's log. */
function keepLog(shell: ChildProcess): () => string {
  let log = "";
  shell.stderr?.on("data", (chunk: Buffer) => {
    log = (log + chunk.toString()).slice(-4_000);
  });
  return () => log;
}

async function untilGone(pid: number): Promise<void> {
  for (let waited = 0; isAlive(pid); waited += intervalMs) {
    if (waited > maxStartMs) throw new Error(`PostgreSQL (process ${pid}) didn't stop.`);
    await pause(intervalMs);
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Whether the server accepts a session. A server in crash recovery answers with an error. */
function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.write(startupMessage);
    });
    const end = (answer: boolean): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.once("data", (answer) => end(answer[0] === authenticates));
    socket.once("error", () => end(false));
    socket.setTimeout(500, () => end(false));
  });
}
