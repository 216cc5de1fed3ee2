/** `npm run faults -- kills --kills 100 --seed 7`: kills a gateway under load, over and over, on one SQLite file. */
import { DatabaseSync } from "node:sqlite";
import { setTimeout as pause } from "node:timers/promises";
import { sqliteStore } from "@tollgate/store-sqlite";
import type { GatewayProcess } from "@tollgate/testing";
import { readNumbers } from "./arguments.ts";
import { openProcesses, type Processes } from "./processes.ts";
import { organization } from "./product.ts";
import { seededRandom } from "./random.ts";
import { goodAnswer } from "./upstream-bytes.ts";

const concurrency = 8;
const maxLoadMs = 400;
/** In each life, the leases of earlier lives have lapsed, and their Steps can be folded into sums by hour. */
const lifeMs = 2 * 3_600_000;
/** Every third life ends this soon: while it folds. */
const foldMs = 15;
const maxSeconds = 300;

const { kills, seed } = readNumbers({ kills: 100, seed: Date.now() % 1_000_000_000 });
process.stdout.write(`${kills} kills, seed ${seed}\n`);
const random = seededRandom(seed);
const started = performance.now();
const processes = await openProcesses(({ send, body }) => send(goodAnswer(body)));
const failures: string[] = [];
let acknowledged = 0;
let recovered = 0;
let killed = 0;

let next = processes.start();
for (; killed < kills && performance.now() - started < maxSeconds * 1_000; killed++) {
  const gateway = await next;
  // The next process starts during the load, and recovers nothing yet.
  next = processes.start();
  recovered += await recover(gateway, killed + 1);
  const completed = await loadUntilKilled(
    gateway,
    random() * (killed % 3 === 2 ? foldMs : maxLoadMs),
  );
  acknowledged += completed.length;
  failures.push(...(await lost(completed)));
  if (killed % 10 === 9)
    failures.push(...integrity(), ...(await processes.problems(false)).filter(isTorn));
}

const last = await next;
recovered += await recover(last, killed + 2);
const folded = await last.command("rollUp");
failures.push(...integrity(), ...(await processes.problems()));
const steps = await processes.steps();
const open = steps.filter(({ outcome }) => outcome === null).length;
const seconds = Math.round((performance.now() - started) / 1_000);
await processes.close();

process.stdout.write(
  `${killed} kills in ${seconds} s: ${steps.length} Steps, ${acknowledged} acknowledged, ${recovered} recovered, ${open} open, ${folded} folded at the end\n`,
);
for (const failure of failures) process.stdout.write(`  ${failure}\n`);
process.stdout.write(
  failures.length === 0 ? "0 torn, 0 lost, 0 held\n" : `${failures.length} failures\n`,
);
process.exit(failures.length === 0 && killed === kills && acknowledged > 0 ? 0 : 1);

async function recover(gateway: GatewayProcess, life: number): Promise<number> {
  const before = await processes.openSteps();
  await gateway.command("push", life * lifeMs);
  await gateway.command("recover");
  return before - (await processes.openSteps());
}

/** Sends requests on several connections until the process is killed. Returns the Steps with complete answers. */
async function loadUntilKilled(gateway: GatewayProcess, life: number): Promise<readonly string[]> {
  const completed: string[] = [];
  let isAlive = true;
  const fold = gateway.command("rollUp").catch(() => null);
  const load = Array.from({ length: concurrency }, async (_, worker) => {
    for (let request = 0; isAlive; request++) {
      const id = await ask(processes, gateway, (worker + request) % 2 === 0).catch(() => null);
      if (id !== null) completed.push(id);
    }
  });
  await pause(life);
  isAlive = false;
  await gateway.kill();
  await Promise.all([fold, ...load]);
  return completed;
}

/** Returns the Step id of a complete answer, or null if the answer was cut. */
async function ask(
  on: Processes,
  gateway: GatewayProcess,
  stream: boolean,
): Promise<string | null> {
  const client = await on.post(gateway, { stream });
  const received = await client.ended();
  const isWhole = stream ? received.includes("data: [DONE]\n\n") : received.endsWith("}");
  if (!received.startsWith("HTTP/1.1 200") || !isWhole) return null;
  return /"id":"chatcmpl-([^"]+)"/.exec(received)?.[1] ?? null;
}

/** Lists acknowledged Steps that the file doesn't contain as completed. */
async function lost(completed: readonly string[]): Promise<readonly string[]> {
  const store = sqliteStore({ filename: processes.filename });
  const problems: string[] = [];
  for (const id of completed) {
    const step = await store.steps.get(organization, id);
    if (step?.outcome !== "completed")
      problems.push(`Step ${id}: acknowledged, but ${step?.outcome}`);
  }
  await store.close();
  return problems;
}

function integrity(): readonly string[] {
  const database = new DatabaseSync(processes.filename, { readOnly: true });
  const result = Object.values(database.prepare("PRAGMA integrity_check").get() ?? {})[0];
  database.close();
  return result === "ok" ? [] : [`integrity_check: ${result}`];
}

/** Between two lives, dead processes leave open Steps. Recovery settles them. */
function isTorn(problem: string): boolean {
  return !problem.endsWith("no process will settle it");
}
