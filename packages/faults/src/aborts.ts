/** `npm run faults -- aborts --streams 10000`: streams whose clients leave, and the resources of the process afterwards. */
import { setTimeout as pause } from "node:timers/promises";
import type { GatewayProcess, RawClient } from "@tollgate/testing";
import { readNumbers } from "./arguments.ts";
import { chatRoute } from "./endpoints.ts";
import type { Holdings } from "./process-commands.ts";
import { openProcesses } from "./processes.ts";
import { chunked, streamHead, text } from "./upstream-bytes.ts";

const concurrency = 50;
/** Streams before the first measurement, to compile code and fill pools. */
const warmUp = 2_000;
const maxHeapGrowth = 4_000_000;

const { streams } = readNumbers({ streams: 10_000 });
const processes = await openProcesses(({ send }) => send(streamHead + chunked(text("Half"))));
const gateway = await processes.start();
const started = performance.now();
await abort(gateway, warmUp);
const before = await holdingsAtRest(gateway);
await abort(gateway, streams);
const after = await holdingsAtRest(gateway);
const seconds = Math.round((performance.now() - started) / 1_000);
const steps = await processes.steps();
const cancelled = steps.filter(({ outcome }) => outcome === "cancelled").length;
const failures = [
  ...(await processes.problems()),
  ...(cancelled === steps.length ? [] : [`only ${cancelled} of ${steps.length} were cancelled`]),
  // A reset right after a request can drop the request too.
  ...(steps.length > 0.9 * (warmUp + streams) ? [] : [`only ${steps.length} Steps were opened`]),
  ...(processes.upstream.connections.open === 0 ? [] : ["connections to the upstream are open"]),
  ...growth(before, after),
];
await processes.close();

process.stdout.write(
  `${streams} aborted streams after ${warmUp} to warm up, ${seconds} s: ${cancelled} cancelled\n`,
);
for (const name of names(before))
  process.stdout.write(
    `  ${name.padEnd(12)} ${formatCount(before[name])} -> ${formatCount(after[name])}\n`,
  );
for (const failure of failures) process.stdout.write(`  ${failure}\n`);
process.stdout.write(
  failures.length === 0 ? "no resources are left over\n" : `${failures.length} failures\n`,
);
process.exit(failures.length === 0 ? 0 : 1);

async function abort(on: GatewayProcess, count: number): Promise<void> {
  let begun = 0;
  const worker = async (): Promise<void> => {
    while (begun < count) {
      const number = begun++;
      await leave(await processes.post(on, { stream: true }, [], chatRoute), number);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
}

/** Half of the clients leave before the first byte. A third each use FIN, RST and a half-close. */
async function leave(client: RawClient, number: number): Promise<void> {
  if (number % 2 === 0) await client.until("Half");
  else await client.until("").catch(() => {});
  if (number % 3 === 0) client.close();
  else if (number % 3 === 1) client.reset();
  else {
    client.halfClose();
    await client.ended();
  }
}

/** Returns the resources of the process when no Step is open. */
async function holdingsAtRest(on: GatewayProcess): Promise<Holdings> {
  while ((await processes.openSteps()) > 0) await pause(50);
  const holdings = await on.command("measure");
  if (!isHoldings(holdings)) throw new Error("The process reported no holdings.");
  return holdings;
}

function growth(from: Holdings, to: Holdings): readonly string[] {
  return names(from)
    .filter((name) => name !== "rssBytes")
    .filter((name) => to[name] > from[name] + (name === "heapBytes" ? maxHeapGrowth : 0))
    .map((name) => `${name} grew from ${formatCount(from[name])} to ${formatCount(to[name])}`);
}

function names(holdings: Holdings): readonly (keyof Holdings)[] {
  return Object.keys(holdings).filter((name): name is keyof Holdings => name in holdings);
}

function isHoldings(value: unknown): value is Holdings {
  return typeof value === "object" && value !== null && "heapBytes" in value;
}

function formatCount(count: number): string {
  return count.toLocaleString("en-US").padStart(12);
}
