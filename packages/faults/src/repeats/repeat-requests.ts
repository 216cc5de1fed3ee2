import { createHash } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import {
  checkBudgets,
  checkEvidence,
  checkQuiet,
  checkUsage,
  type GatewayProcess,
  rawClient,
  type UpstreamExchange,
} from "@tollgate/testing";
import { chatRoute, embeddings, type Route, routes } from "../endpoints.ts";
import { readLedger } from "../load/read-ledger.ts";
import { openProcesses, type Processes } from "../processes.ts";
import { bodyOf, budget, organization } from "../product.ts";
import { readAnswer } from "../read-answer.ts";
import { type DatabaseLocation, openDatabase } from "../stores/database-location.ts";
import { asksForStream, chunked, json, streamHead } from "../upstream-bytes.ts";
import { answerTo } from "../upstream-wires.ts";

/** How requests are repeated, and how often processes are killed meanwhile. */
export interface RepeatPlan {
  readonly requests: number;
  readonly random: () => number;
  /** Requests in flight at once. */
  readonly concurrency: number;
  /** The shortest and the longest time between two kills. */
  readonly killEveryMs: readonly [shortest: number, longest: number];
}

/** Counts of the events, and a list of everything that must not happen. */
export interface RepeatReport {
  readonly kills: number;
  readonly calls: number;
  readonly answers: number;
  readonly replays: number;
  readonly conflicts: number;
  readonly interrupted: number;
  readonly problems: readonly string[];
}

const timesEach = 3;
/** How far apart the repeats of a request are, in requests. */
const spread = 60;
/** Few enough that no API key repeats too often. */
const requestsPerKey = 20;
const leaseLapseMs = 40_000;

/** One request under one key, with its calls and answers. */
interface Sent {
  readonly number: number;
  readonly route: Route;
  readonly stream: boolean;
  /** How the upstream ended each of its calls. */
  readonly calls: ("completed" | "refused" | "unknown")[];
  /** Its complete answers. */
  readonly answers: string[];
  /** The result of each time that it was sent: one of `refusals`, `replayed` or another word. */
  readonly results: string[];
}

/**
 * Sends each request three times under its idempotency key at random moments, to two processes on one database, which are
 * killed one after the other. Then recovers, and sends each once more.
 */
export async function repeatRequests(
  plan: RepeatPlan,
  place?: DatabaseLocation,
): Promise<RepeatReport> {
  const { requests, random } = plan;
  const sent = Array.from({ length: requests }, (_, number) => newRequest(number));
  let isCalm = false;
  const processes = await openProcesses(async (exchange) => {
    const request = sent[Number(/request (\d+)/.exec(exchange.body)?.[1])];
    if (request !== undefined) await answer(request, exchange, isCalm ? 1 : random());
  }, place);
  try {
    const pair = [await processes.start(), await processes.start()];
    const secrets = await createSecrets(pair[0], Math.ceil(requests / requestsPerKey));
    const sendTo = (gateways: readonly GatewayProcess[], place: number | null) => {
      return (request: Sent): Promise<void> => {
        const gateway = gateways[place ?? Math.floor(random() * gateways.length)];
        const secret = secrets[Math.floor(request.number / requestsPerKey)];
        if (gateway === undefined || secret === undefined) throw new Error("no process or key");
        return send(request, { gateway, secret });
      };
    };
    const sending = sendAll(plan, sent, sendTo(pair, null));
    const kills = await killUntil(sending, plan, { processes, pair });
    isCalm = true;
    for (const gateway of pair) await gateway.command("push", leaseLapseMs);
    await pair[0]?.command("recover");
    const lost = lostKeys(await readSteps(processes.place));
    const answered = new Set(sent.filter(({ answers }) => answers.length > 0));
    await sendAll({ ...plan, requests: 0 }, sent, sendTo(pair, 0));
    const ledger = await readSteps(processes.place);
    const problems = [
      ...sent.flatMap((request) => callProblems(request)),
      ...sent.flatMap((request) => repeatProblems(request, { lost, answered })),
      ...[checkUsage, checkEvidence, checkQuiet, checkBudgets].flatMap((check) => check(ledger)),
    ];
    return { kills, ...countsOf(sent), interrupted: lost.size, problems };
  } finally {
    await processes.close();
  }
}

function newRequest(number: number): Sent {
  const route = routes[number % routes.length] ?? chatRoute;
  const stream = number % 2 === 1 && route.endpoint !== embeddings;
  return { number, route, stream, calls: [], answers: [], results: [] };
}

const keyOf = ({ number }: Pick<Sent, "number">): string => `request-${number}`;

/** Mostly answers. Sometimes the upstream refuses, or its answer breaks off. */
async function answer(request: Sent, exchange: UpstreamExchange, chance: number): Promise<void> {
  const { send, body } = exchange;
  // Counts before the first byte: what the gateway does next can't change the count any more.
  if (chance < 0.1) {
    request.calls.push("refused");
    await send(json(503, { error: { message: "Busy." } }));
    return;
  }
  const place = request.calls.push("unknown") - 1;
  await pause(chance * 40);
  if (chance < 0.2) {
    const { opening, text } = request.route.wire;
    if (asksForStream(body)) await send(streamHead + chunked(opening(10, 1) + text("Half of it")));
    exchange.reset();
    return;
  }
  await send(answerTo(exchange));
  request.calls[place] = "completed";
}

/** Sends every request as often as planned, in a random order; once each if nothing is planned. */
async function sendAll(
  { requests, random, concurrency }: RepeatPlan,
  sent: readonly Sent[],
  sendOne: (request: Sent) => Promise<void>,
): Promise<void> {
  const times = requests === 0 ? 1 : timesEach;
  const queue = sent
    .flatMap((request) => Array.from({ length: times }, () => ({ request, at: random() })))
    // Close to each other, so that some repeats come while the first is in flight.
    .sort((a, b) => a.request.number + a.at * spread - (b.request.number + b.at * spread))
    .map(({ request }) => request);
  const workers = Array.from({ length: concurrency }, async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) await sendOne(next);
  });
  await Promise.all(workers);
}

interface Target {
  readonly gateway: GatewayProcess;
  readonly secret: string;
}

/** Words of refusals of an idempotency key. Errors of Messages have no code. */
const mismatch = "different body, data class or source";
const running = "still running";
const interrupted = "was interrupted";
const refusals: readonly string[] = [mismatch, running, interrupted];

/** Words of a process that refuses requests because the machine is slow. */
const busy = "gateway is overloaded";
const maxBusyRepeats = 100;

/** Sends one request, and notes its complete answer or its error. A connection that breaks tells nothing. */
async function send(request: Sent, target: Target): Promise<void> {
  let received = await ask(request, target).catch(() => "");
  for (let again = 0; again < maxBusyRepeats && received.includes(busy); again++) {
    await pause(50);
    received = await ask(request, target).catch(() => "");
  }
  if (received === "") return;
  const { status, headers, body, whole } = readAnswer(received);
  const { read } = request.route.endpoint;
  if (status !== 200) request.results.push(refusals.find((text) => body.includes(text)) ?? "error");
  else if (whole && read(body).isComplete) {
    request.answers.push(body);
    request.results.push(headers["idempotency-replayed"] === "true" ? "replayed" : "answered");
  } else request.results.push("broken off");
}

async function ask(request: Sent, { gateway, secret }: Target): Promise<string> {
  const { stream, number, route } = request;
  const client = await rawClient(gateway.url);
  const content = `This is request ${number} of many`;
  const headers = ["connection: close", `idempotency-key: ${keyOf(request)}`];
  const body = bodyOf(route, stream ? { stream } : {}, content);
  client.post(body, { secret, path: route.endpoint.path, headers });
  return client.ended();
}

async function createSecrets(
  gateway: GatewayProcess | undefined,
  count: number,
): Promise<readonly string[]> {
  const secrets: string[] = [];
  for (let at = 0; at < count; at++) {
    const created = await gateway?.command("createKey", `user-${at}`);
    if (typeof created !== "object" || created === null || !("secret" in created))
      throw new Error("The process created no key.");
    secrets.push(String(created.secret));
  }
  return secrets;
}

/** Kills one process after the other, and starts another in its place, until everything is sent. */
async function killUntil(
  sending: Promise<void>,
  { random, killEveryMs: [shortest, longest] }: RepeatPlan,
  { processes, pair }: { readonly processes: Processes; readonly pair: GatewayProcess[] },
): Promise<number> {
  let isOver = false;
  const ended = sending.finally(() => {
    isOver = true;
  });
  let kills = 0;
  for (;;) {
    await Promise.race([ended, pause(shortest + random() * (longest - shortest))]);
    if (isOver) return kills;
    const place = random() < 0.5 ? 0 : 1;
    const next = processes.start();
    await pair[place]?.kill();
    kills++;
    pair[place] = await next;
  }
}

/** Everything in the database that the checkers read. */
async function readSteps(place: DatabaseLocation) {
  const store = openDatabase(place);
  try {
    return await readLedger(store, { organizationId: organization, budgetId: budget });
  } finally {
    await store.close();
  }
}

/** The idempotency keys of Steps whose process died, as digests. */
function lostKeys({ steps }: Awaited<ReturnType<typeof readSteps>>): ReadonlySet<string> {
  const lost = steps.filter(({ outcome }) => outcome === "interrupted");
  return new Set(lost.flatMap(({ idempotencyKeySha256 }) => idempotencyKeySha256 ?? []));
}

function callProblems({ number, calls, answers }: Sent): readonly string[] {
  const problems: string[] = [];
  const possible = calls.filter((call) => call !== "refused").length;
  if (possible > 1) problems.push(`request ${number} was called ${possible} times`);
  if (new Set(answers).size > 1) problems.push(`request ${number} has different answers`);
  return problems;
}

/** Problems of the last repeat, when nothing else runs. `answered` are the requests that were answered before it. */
function repeatProblems(
  request: Sent,
  { lost, answered }: { readonly lost: ReadonlySet<string>; readonly answered: ReadonlySet<Sent> },
): readonly string[] {
  const { number, answers, results } = request;
  const problems: string[] = [];
  const last = results.at(-1);
  if (results.includes(mismatch)) problems.push(`request ${number} does not equal itself`);
  if (lost.has(sha256Hex(keyOf(request)))) {
    if (last !== interrupted)
      problems.push(`request ${number} lost its process, and its last repeat got ${last}`);
    if (answers.length > 0) problems.push(`request ${number} lost its process and was answered`);
  } else if (answered.has(request) && last !== "replayed")
    problems.push(`request ${number} was answered, and its last repeat got ${last}`);
  return problems;
}

function countsOf(sent: readonly Sent[]) {
  const count = (of: (request: Sent) => number): number =>
    sent.reduce((sum, request) => sum + of(request), 0);
  const ended = (result: string) => (request: Sent) =>
    request.results.filter((one) => one === result).length;
  return {
    calls: count(({ calls }) => calls.length),
    answers: count(({ answers }) => answers.length),
    replays: count(ended("replayed")),
    conflicts: count(ended(running)),
  };
}

function sha256Hex(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
