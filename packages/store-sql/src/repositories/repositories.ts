import type {
  LapsedStep,
  LeaseClock,
  LeaseRenewal,
  SessionRepository,
  StepRepository,
  Store,
  Tenant,
  TranscriptPart,
} from "@tollgate/core/store";
import { lineageOf, type SessionState, transcriptPart } from "@tollgate/store-engine";
import { createConditions } from "../conditions.ts";
import type { SqlDialect } from "../dialect.ts";
import { lists } from "../lists.ts";
import { readRow } from "../rows/row-reader.ts";
import { sessionColumns, sessionFromRow, sessionRecordFromRow } from "../rows/session-row.ts";
import { stepFromRow } from "../rows/step-row.ts";
import { all, anyway, get, run, type Script, type ScriptDatabase } from "../script.ts";
import { leaseStatements } from "../statements/lease.ts";
import { openStepStatements } from "../statements/open-step.ts";
import { transcriptStatements } from "../statements/transcript.ts";
import { createBudgetRepository, createRateLimitRepository } from "./budget-repository.ts";
import { createConnectionRepository } from "./connection-repository.ts";
import { createEvidenceRepository } from "./evidence-repository.ts";
import { createKeyRepository } from "./key-repository.ts";
import { createReadPage, readById } from "./reading.ts";
import { createDecisionRepository, createStepRepository } from "./step-repository.ts";

/** The repositories that read and write alike on every database. */
interface SqlRepositories
  extends Pick<
    Store,
    | "keys"
    | "connections"
    | "decisions"
    | "budgets"
    | "rateLimits"
    | "evidence"
    | "renewLease"
    | "lapsedSteps"
  > {
  readonly steps: Omit<StepRepository, "sweep">;
  readonly sessions: Pick<SessionRepository, "get" | "list" | "transcript">;
}

/** Makes them of a database and what differs in its SQL. A store adds what its own rows and its driver need. */
export function createRepositories(database: ScriptDatabase, dialect: SqlDialect): SqlRepositories {
  const conditions = createConditions(dialect);
  const readPage = createReadPage(database, dialect);
  return {
    keys: createKeyRepository(database, dialect, conditions, readPage),
    connections: createConnectionRepository(database),
    sessions: {
      get: (organizationId, id) =>
        database.read(() => readById(sessions, { organizationId, id }, sessionFromRow)),
      list: (query, paging) =>
        readPage(lists.sessions, conditions.ofSessions(query), paging, sessionFromRow),
      transcript: (organizationId, id, from = 0) =>
        database.read(() => transcriptOf({ organizationId, id }, from)),
    },
    steps: createStepRepository(database, dialect, conditions, readPage),
    decisions: createDecisionRepository(database, conditions, readPage),
    budgets: createBudgetRepository(database, dialect, conditions, readPage),
    rateLimits: createRateLimitRepository(database, dialect),
    evidence: createEvidenceRepository(database, dialect, conditions, readPage),
    renewLease: (renewal) => database.write(() => renewLease(dialect, renewal), anyway),
    lapsedSteps: (query) => database.read(() => lapsedSteps(dialect, query)),
  };
}

const sessions = { name: "sessions", columns: sessionColumns };

/** The messages that a Session and those it branched from contain from a position on. */
function* transcriptOf(
  place: { readonly organizationId: Tenant; readonly id: string },
  from: number,
): Script<readonly TranscriptPart[] | null> {
  const last = yield* readById(sessions, place, sessionRecordFromRow);
  if (!last) return null;
  const origins = yield* originsOf(last);
  const parts: TranscriptPart[] = [];
  for (const { session, end } of lineageOf({ session: (_, id) => origins.get(id) ?? null }, last)) {
    const { organizationId: organization_id, id: session_id } = session;
    const parameters = { organization_id, session_id, end, from };
    for (const row of yield* all(transcriptStatements.parts, parameters))
      parts.push(transcriptPart(partFromRow(row), end));
  }
  return parts;
}

/** The Sessions whose content a Session's history starts with, by their ids. */
function* originsOf(session: SessionState): Script<ReadonlyMap<string, SessionState>> {
  const origins = new Map<string, SessionState>();
  for (let at = session; at.branchedFromSessionId !== null && at.commonLength > 0; ) {
    const name = { organization_id: at.organizationId, id: at.branchedFromSessionId };
    const row = yield* get(openStepStatements.session, name);
    if (row === undefined) break;
    at = sessionRecordFromRow(row);
    origins.set(at.id, at);
  }
  return origins;
}

function partFromRow(row: unknown) {
  const read = readRow(row);
  return {
    stepId: read.text("step_id"),
    kind: read.text("kind") === "reply" ? ("reply" as const) : ("request" as const),
    position: read.integer("position"),
    count: read.integer("count"),
    content: read.bytesOrNull("content"),
  };
}

function* renewLease(dialect: SqlDialect, lease: LeaseRenewal): Script<void> {
  const { processId: process_id, renewal, at, until, steps } = lease;
  const now = yield* timeOf(dialect, lease);
  const lapses_at = now + (until - at);
  if ((yield* run(leaseStatements.renew, { process_id, renewal, lapses_at })) === 0) return;
  // A new process removes the leases of earlier ones.
  if (renewal === 1) yield* run(leaseStatements.forget, { at: now, process_id });
  for (const { organizationId, stepId, outputTokens } of steps)
    yield* run(dialect.updateProgress, {
      process_id,
      organization_id: organizationId,
      step_id: stepId,
      renewal,
      output_tokens: outputTokens,
    });
}

function* lapsedSteps(
  dialect: SqlDialect,
  query: { readonly at: number; readonly clock: LeaseClock; readonly limit: number },
): Script<readonly LapsedStep[]> {
  const at = yield* timeOf(dialect, query);
  const rows = yield* all(leaseStatements.lapsed, { at, limit: query.limit });
  return rows.map((row) => {
    const read = readRow(row);
    return {
      step: stepFromRow(row),
      salt: read.bytesOrNull("salt") ?? new Uint8Array(),
      outputTokens: read.integerOrNull("output_tokens"),
    };
  });
}

/** The clocks of machines that share a database may differ, so leases can follow the database's clock. */
function* timeOf(
  { databaseTime }: SqlDialect,
  { at, clock }: { readonly at: number; readonly clock: LeaseClock },
): Script<number> {
  if (databaseTime === null) return at;
  if (clock === "gateway") return at;
  return readRow(yield* get(databaseTime, {})).integer("now");
}
