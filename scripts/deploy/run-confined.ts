import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { freePort } from "./free-port.ts";

const maxWaitMs = 30_000;
/** The user that the image runs as. */
const user = "65532";
/** A disk with room for the schema and a few hundred calls, in bytes. */
const smallDisk = 6 * 1024 * 1024;
const maxCalls = 5_000;

/**
 * Runs installed packages confined as the image's container is: another user, a file system that can only be read except
 * for a small `/data`, no home, and no environment but the image's. Then it calls the gateway until the disk is full, and
 * ends it with SIGTERM.
 * @throws Error when the gateway doesn't start, answer, fail properly on a full disk, or exit with 0
 */
export async function runConfined(app: string): Promise<void> {
  const port = await freePort();
  const child = spawn("bwrap", [...confinement(app, port), ...command], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const expired = setTimeout(() => child.kill("SIGKILL"), 4 * maxWaitMs);
  try {
    await once(child, "spawn");
    await useGateway(child, `http://127.0.0.1:${port}`);
  } finally {
    clearTimeout(expired);
    child.kill("SIGKILL");
  }
}

const command = [
  "/node",
  "/app/node_modules/tollgate/bin/tollgate.js",
  "serve",
  "--close-within",
  "5",
];

const confinement = (app: string, port: number): readonly string[] => [
  ...[
    "--ro-bind",
    "/usr",
    "/usr",
    "--symlink",
    "usr/lib",
    "/lib",
    "--symlink",
    "usr/lib64",
    "/lib64",
  ],
  ...["--ro-bind", process.execPath, "/node", "--ro-bind", app, "/app"],
  ...["--size", String(smallDisk), "--perms", "0777", "--tmpfs", "/data", "--chdir", "/data"],
  ...["--proc", "/proc", "--dev", "/dev", "--unshare-user", "--uid", user, "--gid", user],
  ...["--unshare-ipc", "--unshare-pid", "--unshare-uts", "--die-with-parent", "--new-session"],
  ...["--clearenv", "--setenv", "NODE_ENV", "production", "--setenv", "PORT", String(port)],
  ...["--cap-drop", "ALL", "--remount-ro", "/"],
];

async function useGateway(child: ChildProcess, url: string): Promise<void> {
  const secret = await readSecret(child);
  await expectStatus(`${url}/readyz`, 200);
  const call = (): Promise<Response> =>
    fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
      body: JSON.stringify({
        model: "sim/tollgate/echo",
        messages: [{ role: "user", content: `Hello ${"x".repeat(4_000)}` }],
      }),
    });
  const first = await call();
  if (first.status !== 200) throw new Error(`The first call got status ${first.status}.`);
  await fillDisk(call);
  await expectStatus(`${url}/healthz`, 200);
  const exited = once(child, "exit");
  endGateway(child);
  await exited;
  if (child.exitCode !== 0) throw new Error(`serve exited with ${child.exitCode}.`);
}

/** Calls until the disk is full. The gateway then answers 503 and stays up. */
async function fillDisk(call: () => Promise<Response>): Promise<void> {
  for (let calls = 0; calls < maxCalls; calls++) {
    const answer = await call();
    const text = await answer.text();
    if (answer.status === 200) continue;
    if (answer.status !== 503 || !text.includes("evidence_unavailable"))
      throw new Error(`On a full disk, a call got status ${answer.status}: ${text}`);
    return;
  }
  throw new Error(`${maxCalls} calls did not fill a disk of ${smallDisk} bytes.`);
}

/** Sends SIGTERM to the confined process itself: bwrap does not pass signals on. */
function endGateway(child: ChildProcess): void {
  const children = execFileSync("pgrep", ["--parent", String(child.pid)], { encoding: "utf8" });
  const [inner] = children.trim().split("\n");
  const [node] = execFileSync("pgrep", ["--parent", String(inner)], { encoding: "utf8" })
    .trim()
    .split("\n");
  process.kill(Number(node), "SIGTERM");
}

async function readSecret(child: ChildProcess): Promise<string> {
  const errors: string[] = [];
  child.stderr?.on("data", (part) => errors.push(String(part)));
  if (child.stdout)
    for await (const line of createInterface({ input: child.stdout })) {
      const secret = /\btg_[0-9A-Za-z]{49}\b/.exec(line)?.[0];
      if (secret !== undefined) return secret;
    }
  throw new Error(`serve printed no key: ${errors.join("")}`);
}

async function expectStatus(url: string, status: number): Promise<void> {
  const answer = await fetch(url, { signal: AbortSignal.timeout(maxWaitMs) });
  if (answer.status !== status) throw new Error(`${url} answered ${answer.status}.`);
}
