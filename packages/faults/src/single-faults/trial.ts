import { createGateway, type Gateway } from "@tollgate/core";
import { definePolicy, forbid, permit } from "@tollgate/core/policy";
import type { Provider } from "@tollgate/core/provider";
import type { Store } from "@tollgate/core/store";
import {
  checkDump,
  checkQuiet,
  countingIds,
  dumpStore,
  type ScriptedProvider,
  scriptedProvider,
} from "@tollgate/testing";
import {
  decisionOfWhole,
  type HistoryRequest,
  type ReceivedAnswer,
  receive,
  requestOf,
  requestWithoutBody,
} from "../histories/ask.ts";
import { createDriver } from "../histories/driver.ts";
import { type SteppedClock, steppedClock } from "../histories/stepped-clock.ts";
import type { EmptyStores } from "../stores/empty-stores.ts";
import { observeStore } from "../stores/observed-store.ts";
import { wrapStore } from "../stores/wrap-store.ts";
import type { Scenario } from "./scenarios.ts";

/** A running scenario. */
export interface Trial {
  readonly provider: ScriptedProvider;
  ask(asked: Omit<HistoryRequest, "secret">): Promise<ReceivedAnswer>;
  /** The same for a caller that the host authenticated. */
  askAs(asked: Omit<HistoryRequest, "secret">): Promise<ReceivedAnswer>;
  askWithoutBody(method: string, path: string): Promise<ReceivedAnswer>;
  /** Leaves in the middle of the answer. */
  askAndLeave(asked: Omit<HistoryRequest, "secret">): Promise<void>;
}

/** The result of a trial: its calls of the store and the provider, its reads of request bodies, and all problems. */
export interface TrialResult {
  readonly calls: readonly string[];
  readonly problems: readonly string[];
}

const organizationId = "acme";
const leaseLapseMs = 40_000;

/**
 * Plays a scenario on an empty store while one of its calls has a fault. Then repairs the store, recovers, and checks
 * everything.
 */
export async function runTrial(
  beneath: Store,
  scenario: Scenario,
  fault: CallFault | null,
): Promise<TrialResult> {
  const { store, untilIdle } = observeStore(beneath);
  const clock = steppedClock(untilIdle);
  const secret = await createSecret(store, clock);
  const problems: string[] = [];
  let client = new AbortController();
  const counted = countedStore(store, fault, () => client.abort());
  const provider = scriptedProvider({ clock, models });
  const gateway = openGateway(counted, {
    clock,
    scenario,
    provider: watchProvider(provider, { store, problems, note: counted.note }),
  });
  const drive = createDriver(clock, untilIdle);

  const send = (asked: HistoryRequest): Request =>
    inPieces(requestOf(asked), client.signal, () => counted.note("body.read"));
  const answered = async (answer: Promise<Response>): Promise<ReceivedAnswer> => {
    const result = await drive(answer.then(receive, brokenOff));
    problems.push(...(await answerProblems(result, scenario.statuses, { store, organizationId })));
    return result;
  };
  await scenario.run({
    provider,
    ask(asked) {
      client = new AbortController();
      return answered(gateway.fetch(send({ ...asked, secret })));
    },
    askAs(asked) {
      client = new AbortController();
      const { fetch } = gateway.as({ organizationId, userId: "ada", label: "web", source: "app" });
      return answered(fetch(send({ ...asked, secret })));
    },
    askWithoutBody: (method, path) =>
      answered(gateway.fetch(requestWithoutBody(method, path, secret))),
    async askAndLeave(asked) {
      client = new AbortController();
      const answer = gateway.fetch(send({ ...asked, secret })).then(receive, brokenOff);
      await clock.advance(6_000);
      client.abort();
      await drive(answer);
    },
  });
  await untilIdle();
  const calls = [...counted.calls];

  counted.mend();
  // The first request may have failed before it opened its gateway; then the next request opens it.
  await drive(gateway.ready());
  await clock.advance(leaseLapseMs);
  const query = { organizations: [organizationId], at: clock.now(), activity: gateway.activity };
  const dump = await drive(dumpStore(store, query));
  problems.push(...checkDump(dump), ...checkQuiet(dump));
  return { calls, problems: problems.map((problem) => `${scenario.name}: ${problem}`) };
}

const models = { "tollgate/scripted": { input: "1", output: "2", maxOutputTokens: 100 } };

/** Creates a key in a process that does nothing else. */
async function createSecret(store: Store, clock: SteppedClock): Promise<string> {
  const silent = { ...clock, after: () => () => {} };
  const provider = scriptedProvider({ clock });
  const gateway = createGateway({ store, clock: silent, providers: { test: provider } });
  const { secret } = await gateway.keys.create({
    organizationId,
    userId: "jane",
    label: "test key",
  });
  return secret;
}

function openGateway(
  { store }: CountedStore,
  {
    clock,
    scenario,
    provider,
  }: { readonly clock: SteppedClock; readonly scenario: Scenario; readonly provider: Provider },
): Gateway {
  return createGateway({
    store,
    clock,
    ids: countingIds(1),
    providers: { test: provider, other: provider },
    policy: definePolicy({
      rules: [
        permit("all", {}, { fallbacks: ["other/tollgate/scripted"] }),
        forbid("not-this-one", { model: "*/*/denied" }),
      ],
    }),
    budgets: [
      { id: "money", limit: { usd: 1 }, period: "total" },
      { id: "few", limit: { requests: scenario.limit ?? 100 }, period: "total" },
    ],
  });
}

/** The provider, which looks at each call whether its attempt is recorded. */
function watchProvider(
  provider: ScriptedProvider,
  {
    store,
    problems,
    note,
  }: { readonly store: Store; readonly problems: string[]; note(name: string): void },
): Provider {
  return {
    ...provider,
    async *complete(call) {
      const query = { organizationId, outcome: ["open" as const] };
      const { data } = await store.steps.list(query, { cursor: null, limit: 10 });
      if (data.flatMap(({ attempts }) => attempts).every(({ end }) => end !== null))
        problems.push("a request was sent without an open attempt");
      note("provider.next");
      for await (const events of provider.complete(call)) {
        yield events;
        note("provider.next");
      }
    },
  };
}

/** The request with a body that arrives in three pieces, and breaks off if the client leaves meanwhile. */
function inPieces(request: Request, signal: AbortSignal, note: () => void): Request {
  const reader = request.body?.getReader();
  let rest: Uint8Array | undefined;
  let pieces = 3;
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        note();
        if (signal.aborted) return controller.error(signal.reason);
        const bytes = rest ?? (await reader?.read())?.value ?? new Uint8Array();
        const length = Math.ceil(bytes.length / pieces);
        pieces--;
        controller.enqueue(bytes.subarray(0, length));
        rest = bytes.subarray(length);
        if (pieces === 0) controller.close();
      },
    },
    { highWaterMark: 0 },
  );
  const { method, headers } = request;
  return new Request(request.url, { method, headers, body, signal, duplex: "half" });
}

function brokenOff(error: unknown): ReceivedAnswer {
  return { status: 0, headers: [], body: error instanceof Error ? error.name : "unknown" };
}

/** Lists problems of an answer: an unexpected status, or a complete answer whose Step is not completed. */
async function answerProblems(
  answer: ReceivedAnswer,
  statuses: readonly number[],
  { store, organizationId }: { readonly store: Store; readonly organizationId: string },
): Promise<readonly string[]> {
  const { status, body } = answer;
  // Errors of Messages have no code.
  const isUnavailable = status === 503 && /"evidence_unavailable"|could not be recorded/.test(body);
  const hasLeft = status === 0;
  if (!isUnavailable && !hasLeft && !statuses.includes(status))
    return [`answered ${status} ${body}`];
  const id = decisionOfWhole(answer);
  if (id === null) return [];
  const { data } = await store.steps.list({ organizationId }, { cursor: null, limit: 100 });
  const outcome = data.find(({ decisionId }) => decisionId === id)?.outcome;
  return outcome === "completed" ? [] : [`a complete answer of a Step with outcome ${outcome}`];
}

/** The result of all faults of a scenario. */
export interface FaultRun {
  readonly faults: number;
  /** Each call and read, in order. */
  readonly calls: readonly string[];
  readonly problems: readonly string[];
}

const kinds: readonly Omit<CallFault, "nth">[] = [
  { action: "fail before", lasting: false },
  { action: "fail after", lasting: false },
  { action: "fail before", lasting: true },
  { action: "fail after", lasting: true },
  { action: "client leaves", lasting: false },
];

/** The kinds of fault of a call. Only the store fails here; the rows F1 to F19 are the provider's own faults. */
function kindsOf(call: string): typeof kinds {
  const isStore = !call.startsWith("provider.") && !call.startsWith("body.");
  return isStore ? kinds : kinds.filter(({ action }) => action === "client leaves");
}

/**
 * Plays a scenario once without a fault, to learn its calls of the store and the provider and its reads of request bodies,
 * and then once for each of these and kind of fault. `every` plays only each n-th of these.
 */
export async function runEveryFault(
  stores: EmptyStores,
  scenario: Scenario,
  every = 1,
): Promise<FaultRun> {
  const { calls, problems } = await onEmptyStore(stores, scenario, null);
  const allProblems = [...problems];
  let faults = 0;
  const all = calls.flatMap((call, at) => kindsOf(call).map((kind) => ({ ...kind, nth: at + 1 })));
  for (const [index, fault] of all.entries()) {
    if (index % every !== 0) continue;
    faults++;
    const result = await onEmptyStore(stores, scenario, fault);
    const where = `${fault.action}, call ${fault.nth} (${calls[fault.nth - 1]})${fault.lasting ? " and later" : ""}`;
    allProblems.push(...result.problems.map((problem) => `${where}: ${problem}`));
  }
  return { faults, calls, problems: allProblems };
}

async function onEmptyStore(stores: EmptyStores, scenario: Scenario, fault: CallFault | null) {
  const { store, drop } = await stores.open();
  try {
    return await runTrial(store, scenario, fault);
  } finally {
    await drop();
  }
}

/** A fault at one call of the store or the provider, or one read of a request's body. */
interface CallFault {
  /** The number of the call, from 1. */
  readonly nth: number;
  /** Fails before the change or after it was committed, or the client leaves while the call runs. */
  readonly action: "fail before" | "fail after" | "client leaves";
  /** Whether every later call fails too, until the store is repaired. */
  readonly lasting: boolean;
}

/** A store that counts its calls and fails one of them. */
interface CountedStore {
  readonly store: Store;
  /** The name of each call so far. */
  readonly calls: readonly string[];
  /** Counts another call, during which only the client can leave. */
  note(name: string): void;
  mend(): void;
}

function countedStore(beneath: Store, fault: CallFault | null, leave: () => void): CountedStore {
  const calls: string[] = [];
  let isMended = false;
  const isHit = (call: number): boolean =>
    fault !== null && !isMended && (fault.lasting ? call >= fault.nth : call === fault.nth);
  return {
    calls,
    note(name) {
      if (isHit(calls.push(name)) && fault?.action === "client leaves") leave();
    },
    store: wrapStore(beneath, async (name, call) => {
      const number = calls.push(name);
      if (!isHit(number)) return call();
      if (fault?.action === "client leaves") leave();
      if (fault?.action === "fail before") throw failed(name, number);
      const result = await call();
      if (fault?.action === "fail after") throw failed(name, number);
      return result;
    }),
    mend() {
      isMended = true;
    },
  };
}

function failed(name: string, number: number): Error {
  return new Error(`Call ${number} of the store, ${name}, failed.`);
}
