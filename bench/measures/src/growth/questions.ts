import { createHash } from "node:crypto";
import { createGateway, everyOrganization, type Gateway } from "@tollgate/core";
import { encodeCursor, type Store, type StorePage, type StorePaging } from "@tollgate/core/store";
import { simProvider } from "@tollgate/provider-sim";
import { sealCursor } from "@tollgate/store-engine";
import { type Delay, DelayWatch } from "../delays.ts";
import { organizationId, stepIntent, stepSettlement } from "../step-intents.ts";
import { apart, cursorSecret, firstAt, idOf, rareKey, type Size } from "./history.ts";

/** A query of a store with a history of this size; `round` makes each query different. */
export interface Question {
  readonly name: string;
  /**
   * How many statements read a page of a list. One of two finds the page's end if no index serves its filter, or the
   * organizations that have its rows.
   */
  readonly statements?: 1 | 2;
  ask(store: Store, size: Size, round: number): Promise<unknown>;
}

const limit = 20;
const first: StorePaging = { cursor: null, limit };
const busy = idOf("key", 1);

/** The page that begins in the middle of a list. */
const middleOf = {
  steps: ({ steps }: Size) => deep("steps", timeOf(steps / 2), steps),
  decisions: ({ steps }: Size) => deep("decisions", timeOf(steps / 2), steps),
  keys: ({ sessions }: Size) => deep("keys", timeOf(sessions / 2), sessions / 2),
  sessions: ({ steps }: Size) => deep("sessions", steps),
  leaves: ({ steps }: Size) => plain("leaves", steps),
};

function timeOf(number: number): number {
  return firstAt + number * apart;
}

function deep(list: string, order: number, tie?: number): StorePaging {
  const { cursor } = plain(list, order, tie);
  return { cursor: sealCursor(list, cursor, { secret: cursorSecret, organizationId }), limit };
}

function plain(list: string, order: number, tie?: number) {
  return { cursor: encodeCursor(list, { order, tie: tie === undefined ? "" : `${tie}` }), limit };
}

/** The queries of requests and administrators. */
export const questions: readonly Question[] = [
  {
    name: "open and settle a Step",
    async ask(store, { sessions }, round) {
      const owner = { organizationId, userId: "user-1", keyId: busy };
      const stepId = `measured-${round}`;
      // Newer than all rows, like the next request.
      const at = firstAt + sessions * 1_000_000 + round;
      const opening = await store.openStep(stepIntent(stepId, owner, at));
      const settling = await store.settleStep(stepSettlement(stepId, at));
      if (!opening.opened || !settling.settled) throw new Error("The Step was not recorded.");
    },
  },
  {
    name: "find a key by its secret",
    async ask(store, { sessions }) {
      const digest = Buffer.from(`${sessions / 2}`.padStart(32, "0"));
      if (!(await store.keys.findByDigest(digest, firstAt)))
        throw new Error("The key was not found.");
    },
  },
  {
    name: "miss a key",
    ask: (store) => store.keys.findByDigest(createHash("sha256").update("other").digest(), firstAt),
  },
  {
    name: "one Step",
    ask: (store, { steps }) => store.steps.get(organizationId, idOf("step", steps / 2)),
  },
  ...ofSteps("Steps", {}),
  ...ofSteps("activity", { outcome: ["completed"] }, 2),
  ...ofSteps("Steps of a key", { keyId: [busy] }),
  page("Steps of a key long unused", (store) =>
    store.steps.list({ organizationId, keyId: [idOf("key", rareKey)] }, first),
  ),
  page("Steps of a Session", (store, { sessions }) =>
    store.steps.list({ organizationId, sessionId: [idOf("session", sessions / 2)] }, first),
  ),
  page(
    "Steps of a Turn",
    (store, { steps }) =>
      store.steps.list({ organizationId, turnId: [idOf("step", steps / 2)] }, first),
    2,
  ),
  ...ofSteps("Steps of a model", { model: ["model-1"] }),
  page("Steps of a model long unused", (store) =>
    store.steps.list({ organizationId, model: ["model-rare"] }, first),
  ),
  ...ofSteps("failed Steps", { outcome: ["failed"] }),
  page("interrupted Steps, all long ago", (store) =>
    store.steps.list({ organizationId, outcome: ["interrupted"] }, first),
  ),
  page("Sessions", (store) => store.sessions.list({ organizationId }, first)),
  page("Sessions, deep", (store, size) =>
    store.sessions.list({ organizationId }, middleOf.sessions(size)),
  ),
  page("Sessions of a key", (store) => store.sessions.list({ organizationId, keyId: busy }, first)),
  page("Sessions of a key, deep", (store, size) =>
    store.sessions.list({ organizationId, keyId: busy }, middleOf.sessions(size)),
  ),
  page("Sessions of a key long unused", (store) =>
    store.sessions.list({ organizationId, keyId: idOf("key", rareKey) }, first),
  ),
  page("decisions", (store) => store.decisions.list({ organizationId }, first)),
  page("decisions, deep", (store, size) =>
    store.decisions.list({ organizationId }, middleOf.decisions(size)),
  ),
  page("decisions of a key long unused", (store) =>
    store.decisions.list({ organizationId, keyId: [idOf("key", rareKey)] }, first),
  ),
  page("denials, all long ago", (store) =>
    store.decisions.list({ organizationId, effect: "deny" }, first),
  ),
  page("keys", (store) => store.keys.list({ organizationId }, first)),
  page("keys, deep", (store, size) => store.keys.list({ organizationId }, middleOf.keys(size))),
  page("leaves", (store) => store.evidence.list({ organizationId }, first)),
  page("leaves, deep", (store, size) =>
    store.evidence.list({ organizationId }, middleOf.leaves(size)),
  ),
  ...(["steps", "sessions", "decisions", "keys"] as const).map((list) =>
    page(
      `${list} of every organization`,
      (store) => store[list].list({ organizationId: null }, first),
      2,
    ),
  ),
];

/** The first page and one from the middle. */
function ofSteps(
  name: string,
  filter: Omit<Parameters<Store["steps"]["list"]>[0], "organizationId">,
  statements: Question["statements"] = 1,
): readonly Question[] {
  const query = { organizationId, ...filter };
  return [
    page(name, (store) => store.steps.list(query, first), statements),
    page(
      `${name}, deep`,
      (store, size) => store.steps.list(query, middleOf.steps(size)),
      statements,
    ),
  ];
}

function page(
  name: string,
  read: (store: Store, size: Size) => Promise<StorePage<unknown>>,
  statements: Question["statements"] = 1,
): Question {
  return {
    name,
    statements,
    async ask(store, size) {
      if ((await read(store, size)).data.length === 0) throw new Error(`${name} returned no rows.`);
    },
  };
}

const all = { organizationId: everyOrganization } as const;

/** Work on all organizations. It looks into each, so it may take a long time, but other work continues meanwhile. */
const works: Readonly<Record<string, (gateway: Gateway) => PromiseLike<unknown>>> = {
  "a sweep and a rollup of nothing": (gateway) => gateway.sweep(),
  "Steps of every organization": ({ steps }) => steps.list(all, { limit }),
  "Steps of a user of every organization": ({ steps }) =>
    steps.list({ ...all, user: "nobody" }, { limit }),
  "Sessions of every organization": ({ sessions }) => sessions.list(all, { limit }),
  "decisions of every organization": ({ decisions }) => decisions.list(all, { limit }),
  "keys of every organization": ({ keys }) => keys.list(all, { limit }),
  "a Step that doesn't exist": ({ steps }) =>
    steps.get({ ...all, id: idOf("nothing", 0) }).catch(() => null),
  "reconciling budgets": ({ budgets }) => budgets.reconcile(),
};

/** How long a work took, and for how long it held up the event loop, in milliseconds. */
export interface WorkOnAll {
  readonly name: string;
  readonly time: number;
  readonly delay: Delay;
}

/** Runs each work once on a store with a history of many organizations. */
export async function measureOrganizations(store: Store): Promise<readonly WorkOnAll[]> {
  const gateway = createGateway({
    store,
    providers: { sim: simProvider() },
    retention: { activity: "36500d", transcripts: "36500d" },
    maintenance: false,
  });
  // The first commit also writes to the disk what filling the store left to the system.
  await gateway.sweep();
  const watch = new DelayWatch();
  const measured: WorkOnAll[] = [];
  for (const [name, run] of Object.entries(works)) {
    watch.take();
    const started = performance.now();
    await run(gateway);
    measured.push({ name, time: performance.now() - started, delay: watch.take() });
  }
  watch.stop();
  await gateway.close();
  return measured;
}
