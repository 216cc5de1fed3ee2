import type { Activity } from "@tollgate/core";
import type {
  BudgetCounter,
  EvidenceLeaf,
  PolicyDecision,
  Session,
  Step,
  Store,
  TranscriptPart,
  UsageGroup,
} from "@tollgate/core/store";
import { everyRow } from "./every-row.ts";
import { leafHolds } from "./leaf-facts.ts";
import { rolledUp } from "./rolled-up.ts";

/** All readable records of some organizations in a store. */
export interface StoreDump {
  /** When the dump was read, on the gateway's clock. */
  readonly at: number;
  readonly steps: readonly Step[];
  readonly decisions: readonly PolicyDecision[];
  /** Each organization's leaves in the order they were written. */
  readonly leaves: readonly EvidenceLeaf[];
  /** The counters of every budget that a leaf names. */
  readonly counters: readonly BudgetCounter[];
  /** Open Steps that no process will settle. */
  readonly lapsedSteps: readonly string[];
  readonly sessions: readonly SessionDump[];
  /** Step ids of the activity records. */
  readonly activity: readonly string[];
  /** The hourly sums, with the Steps that are in none yet. */
  readonly usage: readonly UsageGroup[];
}

/** A Session and its transcript. */
export interface SessionDump {
  readonly session: Session;
  readonly parts: readonly TranscriptPart[];
}

/** The organizations to dump, and the current time. */
export interface DumpQuery {
  readonly organizations: readonly string[];
  /** Milliseconds since the epoch, on the gateway's clock. */
  readonly at: number;
  /** `gateway.activity` */
  readonly activity: Activity;
}

/** Reads a dump. Nothing else may write meanwhile, because it reads part by part. */
export async function dumpStore(store: Store, query: DumpQuery): Promise<StoreDump> {
  const { organizations, at, activity } = query;
  const ofEach = async <Row>(read: (organizationId: string) => Promise<readonly Row[]>) =>
    (await Promise.all(organizations.map(read))).flat();
  const leaves = await ofEach((organizationId) =>
    everyRow((paging) => store.evidence.list({ organizationId }, paging)),
  );
  const sessions = await ofEach((organizationId) =>
    everyRow((paging) => store.sessions.list({ organizationId }, paging)),
  );
  const lapsed = await store.lapsedSteps({ at, clock: "gateway", after: null, limit: 100_000 });
  return {
    at,
    leaves,
    steps: await ofEach((organizationId) =>
      everyRow((paging) => store.steps.list({ organizationId }, paging)),
    ),
    decisions: await ofEach((organizationId) =>
      everyRow((paging) => store.decisions.list({ organizationId }, paging)),
    ),
    counters: await countersOf(store, leaves),
    lapsedSteps: lapsed.steps.map(({ step }) => step.id),
    sessions: await sessionDumps(store, sessions),
    activity: await ofEach((organizationId) => activityOf(activity, organizationId)),
    usage: await rolledUp(store, organizations),
  };
}

async function countersOf(
  store: Store,
  leaves: readonly EvidenceLeaf[],
): Promise<readonly BudgetCounter[]> {
  const ids = new Set(leaves.flatMap(leafHolds).map(({ budgetId }) => budgetId));
  const counters = [...ids].map((budgetId) =>
    everyRow((paging) => store.budgets.counters({ budgetId }, paging)),
  );
  return (await Promise.all(counters)).flat();
}

/** Reads one transcript after the other, because a store bounds how many calls wait. */
async function sessionDumps(
  store: Store,
  sessions: readonly Session[],
): Promise<readonly SessionDump[]> {
  const dumps: SessionDump[] = [];
  for (const session of sessions) {
    const parts = await store.sessions.transcript(session.organizationId, session.id);
    dumps.push({ session, parts: parts ?? [] });
  }
  return dumps;
}

async function activityOf(activity: Activity, organizationId: string): Promise<readonly string[]> {
  const ids: string[] = [];
  for await (const { id } of activity.list({ organizationId }, { limit: 1_000 })) ids.push(id);
  return ids;
}
