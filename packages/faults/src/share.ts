/**
 * `npm run faults -- share --keys 10 --rate 20 --factor 20 --seconds 10 --rounds 3 --delay 50`: one key sends a multiple of
 * its share. The others' p99 must less than double.
 */
import { setTimeout as pause } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import type { GatewayProcess } from "@tollgate/testing";
import { readNumbers } from "./arguments.ts";
import { openProcesses } from "./processes.ts";
import { type LoadResult, type OpenLoad, runLoad } from "./share/open-load.ts";
import { goodAnswer } from "./upstream-bytes.ts";

const { keys, rate, factor, seconds, rounds, delay } = readNumbers({
  keys: 10,
  rate: 20,
  factor: 20,
  seconds: 10,
  rounds: 3,
  delay: 50,
});
const warmUpSeconds = 3;
// Many new connections would measure how fast the system accepts them.
const maxConnections = 64;

const processes = await openProcesses(async ({ send, body }) => {
  await pause(delay);
  await send(goodAnswer(body));
});
const gateway = await processes.start();
const secrets = await Promise.all(
  Array.from({ length: keys + 1 }, (_, number) => createKey(gateway, `user-${number}`)),
);
const [loud = "", ...quiet] = secrets;

await play(1, warmUpSeconds);
const fair: number[] = [];
const flooded: number[] = [];
for (let round = 1; round <= rounds; round++) {
  for (const [times, into] of [
    [1, fair],
    [factor, flooded],
  ] as const) {
    const { others, one } = await play(times, seconds);
    const p99 = percentile(others.latencies, 0.99);
    into.push(p99);
    process.stdout.write(
      `round ${round}, one key at ${times} times its share: the others' p50 ${percentile(others.latencies, 0.5).toFixed(1)} ms, p99 ${p99.toFixed(1)} ms, ` +
        `${JSON.stringify(others.statuses)}; its own ${JSON.stringify(one.statuses)}\n`,
    );
    if (Object.keys(others.statuses).some((status) => status !== "200"))
      process.stdout.write("  some of the others were refused\n");
  }
}
const problems = await processes.problems();
await processes.close();
const ratio = median(flooded) / median(fair);
process.stdout.write(
  `the others' p99: ${median(fair).toFixed(1)} ms at equal shares, ${median(flooded).toFixed(1)} ms under the flood, ${ratio.toFixed(2)} times\n`,
);
for (const problem of problems) process.stdout.write(`  ${problem}\n`);
process.exit(ratio < 2 && problems.length === 0 ? 0 : 1);

async function play(
  times: number,
  duration: number,
): Promise<{ readonly others: LoadResult; readonly one: LoadResult }> {
  const { url } = gateway;
  const load = { url, perSecond: rate, seconds: duration, connections: maxConnections };
  const flood = inWorker({ ...load, secret: loud, perSecond: rate * times });
  const all = await Promise.all(quiet.map((secret) => runLoad({ ...load, secret })));
  return { others: sum(all), one: await flood };
}

function inWorker(load: OpenLoad): Promise<LoadResult> {
  const worker = new Worker(new URL("./share/open-load.ts", import.meta.url), { workerData: load });
  return new Promise((resolve, reject) => {
    worker.once("message", resolve).once("error", reject);
  });
}

function sum(results: readonly LoadResult[]): LoadResult {
  const statuses: Record<string, number> = {};
  for (const result of results)
    for (const [status, count] of Object.entries(result.statuses))
      statuses[status] = (statuses[status] ?? 0) + count;
  return { latencies: results.flatMap(({ latencies }) => latencies), statuses };
}

async function createKey(on: GatewayProcess, user: string): Promise<string> {
  const created = await on.command("createKey", user);
  if (typeof created === "object" && created !== null && "secret" in created)
    return String(created.secret);
  throw new Error("The process created no key.");
}

function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

function median(values: readonly number[]): number {
  return percentile(values, 0.5);
}
