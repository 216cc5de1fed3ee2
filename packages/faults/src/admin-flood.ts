/**
 * `npm run faults -- admin-flood --seconds 10 --rounds 3 --clients 8 --readers 64 --steps 2000`: the p99 of chats at
 * `tollgate serve` on SQLite, in turns alone and next to readers of the admin API that don't wait as they are asked to. The
 * median of the rounds must less than double, and readers beyond the bound must get 503. Takes 2 × seconds × rounds, and the
 * time to make the Steps that are read.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { readNumbers } from "./arguments.ts";

const maxFactor = 2;
const launch = [
  "--conditions=tollgate-source",
  fileURLToPath(new URL("../../cli/bin/tollgate.js", import.meta.url)),
];
const paths = ["steps?limit=1000", "steps/summary?by=model", "steps/export?format=csv", "changes"];
/** Readers begin this long before the chats that are measured next to them. */
const begunMs = 500;
/** The p99 of fewer chats is the time of a few of them. */
const minChats = 500;
/** A tenth of what `retry-after` asks for. */
const impatienceMs = 100;

if (isMainThread) await measure();
else await readForever(workerData);

/** Measures, and sets the exit code. */
async function measure(): Promise<void> {
  const numbers = { seconds: 10, rounds: 3, clients: 8, readers: 64, steps: 2_000 };
  const { seconds, rounds, clients, readers, steps } = readNumbers(numbers);
  const folder = mkdtempSync(join(tmpdir(), "tollgate-admin-flood-"));
  const environment = { PATH: process.env["PATH"] };

  const server = spawn(
    process.execPath,
    [...launch, "serve", "--port", "0", "--admin-port", "0", "--json"],
    { cwd: folder, env: environment, stdio: ["ignore", "pipe", "inherit"] },
  );
  process.once("exit", () => server.kill());
  const { url, adminUrl, secret } = await announced(server.stdout);
  const made = execFileSync(
    process.execPath,
    [
      ...[...launch, "admin-tokens", "create", "--json", "--label", "flood"],
      ...["--role", "admin", "--all-organizations"],
    ],
    { cwd: folder, env: environment, encoding: "utf8" },
  );
  const flood: Flood = { url: adminUrl, token: String(JSON.parse(made).secret), readers };

  for (let sent = 0; sent < steps; sent += clients)
    await Promise.all(Array.from({ length: clients }, () => chat({ url, secret })));
  const [alone, flooded]: [number[], number[]] = [[], []];
  let refused = 0;
  for (let round = 0; round < rounds; round++) {
    alone.push(await p99({ url, secret }, { seconds, clients }));
    const worker = new Worker(new URL(import.meta.url), {
      workerData: flood,
    });
    await once(worker, "message");
    flooded.push(await p99({ url, secret }, { seconds, clients }));
    worker.postMessage("report");
    const [statuses] = await once(worker, "message");
    await worker.terminate();
    refused += statuses[503] ?? 0;
    const figures = `alone ${alone.at(-1)?.toFixed(1)} ms, next to the flood ${flooded.at(-1)?.toFixed(1)} ms`;
    process.stdout.write(`p99 ${figures}; answers to readers ${JSON.stringify(statuses)}\n`);
  }
  server.kill("SIGTERM");
  await once(server, "exit");
  rmSync(folder, { recursive: true, force: true });

  const factor = median(flooded) / median(alone);
  process.stdout.write(
    `the p99 is ${factor.toFixed(2)} times as long, with ${refused} answers 503\n`,
  );
  if (!(factor < maxFactor)) process.stdout.write(`FAILED: it must be less than ${maxFactor}\n`);
  if (refused === 0) process.stdout.write("FAILED: no reader was refused\n");
  process.exitCode = factor < maxFactor && refused > 0 ? 0 : 1;
}

/** The flood that one worker sends. */
interface Flood {
  readonly url: string;
  readonly token: string;
  readonly readers: number;
}

/** Reads as fast as it gets answers until the worker ends, and counts them by their status. */
async function read({ url, token }: Flood, from: number, count: (status: number) => void) {
  for (let turn = from; ; turn++) {
    const path = `${url}/admin/v1/${paths[turn % paths.length]}`;
    const answer = await fetch(path, { headers: { authorization: `Bearer ${token}` } });
    await answer.arrayBuffer();
    count(answer.status);
    if (answer.status === 503) await pause(impatienceMs);
  }
}

/** Floods until the worker ends. A message asks for the number of answers by their status. */
async function readForever(flood: Flood): Promise<void> {
  const statuses: Record<number, number> = {};
  const count = (status: number): void => {
    statuses[status] = (statuses[status] ?? 0) + 1;
  };
  parentPort?.on("message", () => parentPort?.postMessage(statuses));
  setTimeout(() => parentPort?.postMessage("begun"), begunMs);
  await Promise.all(Array.from({ length: flood.readers }, (_, at) => read(flood, at, count)));
}

/** Where chats go. */
interface Place {
  readonly url: string;
  readonly secret: string;
}

/** The document that `serve --json` prints when it listens. */
async function announced(
  stdout: NodeJS.ReadableStream,
): Promise<Readonly<Record<"url" | "adminUrl" | "secret", string>>> {
  let text = "";
  for await (const line of createInterface({ input: stdout })) {
    text += line;
    if (line === "}") break;
  }
  stdout.resume();
  return JSON.parse(text);
}

/** The p99 of chats by clients that each send one after the other, in milliseconds. */
async function p99(
  place: Place,
  { seconds, clients }: { readonly seconds: number; readonly clients: number },
): Promise<number> {
  const times: number[] = [];
  const end = performance.now() + seconds * 1_000;
  await Promise.all(
    Array.from({ length: clients }, async () => {
      while (performance.now() < end) times.push(await chat(place));
    }),
  );
  if (times.length < minChats)
    throw new Error(
      `Only ${times.length} chats: measure at least ${minChats}, with more --seconds.`,
    );
  times.sort((a, b) => a - b);
  return times[Math.floor(times.length * 0.99)] ?? Number.NaN;
}

/** Sends one chat and returns how long it took. */
async function chat({ url, secret }: Place): Promise<number> {
  const started = performance.now();
  const answer = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: "sim/tollgate/echo",
      messages: [{ role: "user", content: "Hello" }],
    }),
  });
  await answer.arrayBuffer();
  if (answer.status !== 200) throw new Error(`A chat was answered with ${answer.status}.`);
  return performance.now() - started;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
