/**
 * `npm run faults -- kills --kills 100 --seed 7 --store postgres`: kills a gateway under load, over and over, on one SQLite
 * file (the default) or in one schema of PostgreSQL. It seals its evidence all the time. At the end, every leaf is sealed,
 * and the logs hold with every checkpoint that was seen in between.
 */
import { generateKeyPairSync } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as pause } from "node:timers/promises";
import type { GatewayProcess } from "@tollgate/testing";
import { startPostgres } from "@tollgate/testing/postgres";
import { readNumbers, readTexts } from "./arguments.ts";
import { chatRoute, embeddings, routes } from "./endpoints.ts";
import { openProcesses, type Processes } from "./processes.ts";
import { organization } from "./product.ts";
import { seededRandom } from "./random.ts";
import { readAnswer } from "./read-answer.ts";
import { openDatabase } from "./stores/database-location.ts";
import { answerTo } from "./upstream-wires.ts";
import { isVerifiedLogs } from "./verified-logs.ts";

const concurrency = 8;
const maxLoadMs = 400;
/** In each life, the leases of earlier lives have lapsed, and their Steps can be folded into hourly sums. */
const lifeMs = 2 * 3_600_000;
/** Every third life ends this soon: while it folds. The others are counted from their first answer. */
const foldMs = 15;
const maxFirstAnswerMs = 10_000;
const maxSeconds = 1_800;
/** Every record is checked this often, because that takes longer the more there are. */
const killsBetweenChecks = 25;

const defaults = { kills: 100, seed: Date.now() % 1_000_000_000 };
const { kills, seed } = readNumbers(defaults, ["store"]);
const { store: kind = "sqlite" } = readTexts([...Object.keys(defaults), "store"]);
if (kind !== "sqlite" && kind !== "postgres") {
  process.stderr.write(`--store must be sqlite or postgres, not ${kind}.\n`);
  process.exit(2);
}
process.stdout.write(`${kills} kills on ${kind}, seed ${seed}\n`);
const random = seededRandom(seed);
const started = performance.now();
const server = kind === "postgres" ? await startPostgres({ fsync: true }) : null;
const processes = await openProcesses(
  (exchange) => exchange.send(answerTo(exchange)),
  server === null ? undefined : { url: server.url, schema: "tollgate" },
);
const { privateKey } = generateKeyPairSync("ed25519");
const signingKey = privateKey.export({ format: "pem", type: "pkcs8" }).toString();
const start = (): Promise<GatewayProcess> => processes.start({ signingKey });
const failures: string[] = [];
const anchors: string[] = [];
let acknowledged = 0;
let recovered = 0;
let killed = 0;

let next = start();
for (; killed < kills && performance.now() - started < maxSeconds * 1_000; killed++) {
  const gateway = await next;
  // The next process starts during the load, and recovers nothing yet.
  next = start();
  recovered += await recover(gateway, killed + 1);
  if (killed % killsBetweenChecks === 0) await verify(gateway);
  const isFolding = killed % 3 === 2;
  const completed = await loadUntilKilled(gateway, {
    afterAnswer: !isFolding,
    life: random() * (isFolding ? foldMs : maxLoadMs),
  });
  acknowledged += completed.length;
  failures.push(...(await lost(completed)));
  if (killed % killsBetweenChecks === killsBetweenChecks - 1)
    failures.push(...integrity(), ...(await processes.problems(false)).filter(isTorn));
}

const last = await next;
recovered += await recover(last, killed + 2);
const folded = await last.command("rollUp");
await last.command("seal");
const sealed = await verify(last);
const { leaves } = await processes.dump();
if (sealed !== leaves.length) failures.push(`${leaves.length} leaves, but ${sealed} are in a log`);
failures.push(...integrity(), ...(await processes.problems()));
const steps = await processes.steps();
const open = steps.filter(({ outcome }) => outcome === null).length;
const seconds = Math.round((performance.now() - started) / 1_000);
await processes.close();
await server?.stop();

process.stdout.write(
  `${killed} kills in ${seconds} s: ${steps.length} Steps, ${acknowledged} acknowledged, ${recovered} recovered, ${open} open, ${folded} folded at the end, ${sealed} leaves sealed\n`,
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

/** Verifies every log and all checkpoints seen so far. Returns how many leaves are sealed. */
async function verify(gateway: GatewayProcess): Promise<number> {
  const verified = await gateway.command("verify", anchors);
  if (!isVerifiedLogs(verified)) throw new Error("The process didn't verify its logs.");
  failures.push(...verified.problems);
  anchors.push(...verified.anchors);
  return verified.leaves;
}

/** Sends requests on several connections until the process is killed. Returns the decisions with complete answers. */
async function loadUntilKilled(
  gateway: GatewayProcess,
  { afterAnswer, life }: { readonly afterAnswer: boolean; readonly life: number },
): Promise<readonly string[]> {
  const completed: string[] = [];
  const answered = Promise.withResolvers<void>();
  let isAlive = true;
  const fold = gateway.command("rollUp").catch(() => null);
  const seal = sealWhile(gateway, () => isAlive);
  const load = Array.from({ length: concurrency }, async (_, worker) => {
    for (let request = 0; isAlive; request++) {
      const id = await ask(processes, gateway, worker + request).catch(() => null);
      if (id === null) continue;
      completed.push(id);
      answered.resolve();
    }
  });
  if (afterAnswer)
    await Promise.race([answered.promise, pause(maxFirstAnswerMs, undefined, { ref: false })]);
  await pause(life);
  isAlive = false;
  await gateway.kill();
  await Promise.all([fold, seal, ...load]);
  return completed;
}

/** Seals again and again until the process is killed. */
async function sealWhile(gateway: GatewayProcess, isAlive: () => boolean): Promise<void> {
  try {
    while (isAlive()) await gateway.command("seal");
  } catch (thrown) {
    if (isAlive()) failures.push(`sealing: ${thrown}`);
  }
}

/** Asks every endpoint in turn. Returns the decision of a complete answer, or null if the answer was cut. */
async function ask(on: Processes, gateway: GatewayProcess, number: number): Promise<string | null> {
  const route = routes[number % routes.length] ?? chatRoute;
  const streams = route.endpoint !== embeddings && Math.floor(number / routes.length) % 2 === 0;
  const client = await on.post(gateway, streams ? { stream: true } : {}, [], route);
  const { status, whole, headers, body } = readAnswer(await client.ended());
  if (status !== 200 || !whole) return null;
  const { isComplete, isEnded } = route.endpoint.read(body);
  return isComplete && isEnded ? (headers["x-service-policy-decision-id"] ?? null) : null;
}

/** Lists acknowledged Steps of the last life that the database doesn't contain as completed. */
async function lost(completed: readonly string[]): Promise<readonly string[]> {
  const store = openDatabase(processes.place);
  const newest = { cursor: null, limit: 1_000 };
  const { data } = await store.steps.list({ organizationId: organization }, newest);
  await store.close();
  const outcomes = new Map(data.map(({ decisionId, outcome }) => [decisionId, outcome]));
  return completed
    .filter((decision) => outcomes.get(decision) !== "completed")
    .map((decision) => `decision ${decision}: acknowledged, but ${outcomes.get(decision)}`);
}

/** The problems of a SQLite file. PostgreSQL has no such check. */
function integrity(): readonly string[] {
  if (!("filename" in processes.place)) return [];
  const database = new DatabaseSync(processes.place.filename, { readOnly: true });
  const result = Object.values(database.prepare("PRAGMA integrity_check").get() ?? {})[0];
  database.close();
  return result === "ok" ? [] : [`integrity_check: ${result}`];
}

/** Between two lives, dead processes leave open Steps. Recovery settles them. */
function isTorn(problem: string): boolean {
  return !problem.endsWith("no process will settle it");
}
