import type {
  BudgetRepository,
  ConnectionRepository,
  EvidenceRepository,
  LapsedStep,
  LapsedSteps,
  LeaseClock,
  LeaseRenewal,
  Owner,
  ResponseRepository,
  SealedConnection,
  SessionRepository,
  StepRepository,
  Store,
  TranscriptPart,
} from "@tollgate/core/store";
import { isOwnedBy, lineageOf, type SessionState, transcriptPart } from "@tollgate/store-engine";
import { type Conditions, createConditions } from "../conditions.ts";
import type { SqlDialect } from "../dialect.ts";
import { lists } from "../lists.ts";
import { connectionRows } from "../rows/connection-row.ts";
import { leafFromRow } from "../rows/leaf-row.ts";
import { historyFromRows, responseRows } from "../rows/response-row.ts";
import { readRow } from "../rows/row-reader.ts";
import { sessionColumns, sessionFromRow, sessionRecordFromRow } from "../rows/session-row.ts";
import { stepFromRow } from "../rows/step-row.ts";
import {
  all,
  anyway,
  get,
  once,
  run,
  type Script,
  type ScriptDatabase,
  query as select,
} from "../script.ts";
import { administrationStatements } from "../statements/administration.ts";
import {
  connectionPage,
  connectionStatements,
  selectConnections,
} from "../statements/connection.ts";
import { leaseStatements } from "../statements/lease.ts";
import { openStepStatements } from "../statements/open-step.ts";
import { responseStatements } from "../statements/response.ts";
import { transcriptStatements } from "../statements/transcript.ts";
import { createBudgetRepository, createRateLimitRepository } from "./budget-repository.ts";
import { createCheckpointRepository } from "./checkpoint-repository.ts";
import { createAdminTokenRepository, createKeyRepository } from "./key-repository.ts";
import { createReadPage, insertLeaf, type ReadPage, readById, readWhere } from "./reading.ts";
import { createDecisionRepository, createStepRepository } from "./step-repository.ts";
import { createUsageRepository } from "./usage-repository.ts";

/** The repositories whose reads and writes are the same on every database. */
interface SqlRepositories
  extends Pick<
    Store,
    | "keys"
    | "connections"
    | "decisions"
    | "rateLimits"
    | "adminTokens"
    | "evidence"
    | "checkpoints"
    | "usage"
    | "renewLease"
    | "lapsedSteps"
  > {
  readonly steps: Omit<StepRepository, "sweep">;
  readonly budgets: Omit<BudgetRepository, "reconcile">;
  readonly sessions: Omit<SessionRepository, "find" | "sweep">;
  readonly responses: Pick<ResponseRepository, "get" | "history">;
}

/**
 * Creates the repositories from a database and the SQL that differs there. Each store adds those that depend on its own
 * rows and driver.
 */
export function createRepositories(database: ScriptDatabase, dialect: SqlDialect): SqlRepositories {
  const conditions = createConditions(dialect);
  const readPage = createReadPage(database, dialect);
  return {
    keys: createKeyRepository(database, dialect, conditions, readPage),
    connections: createConnectionRepository(database, dialect),
    sessions: {
      get: (organizationId, id) =>
        readWhere(database, sessions, { organizationId, id }, (organizationId) =>
          readById(sessions, { organizationId, id }, sessionFromRow),
        ),
      list: (query, paging) =>
        readPage(lists.sessions, conditions.ofSessions(query), paging, sessionFromRow),
      transcript: (organizationId, id, from = 0, to = Number.MAX_SAFE_INTEGER) =>
        readWhere(database, sessions, { organizationId, id }, (organizationId) =>
          transcriptOf({ organizationId, id }, { from, to }),
        ),
      isOwned: async (owner, id) =>
        (await database.read(() => ownSession(owner, openStepStatements.session, id))) !== null,
      findByTurn: (owner, turnId) =>
        database.read(() => ownSession(owner, openStepStatements.sessionOfTurn, turnId)),
    },
    responses: {
      get: (owner, id, at) =>
        database.read(function* () {
          const row = yield* get(responseStatements.get, liveParameters(owner, id, at));
          return row === undefined ? null : responseRows.fromRow(row);
        }),
      history: (owner, id, at) =>
        database.read(function* () {
          return historyFromRows(
            yield* all(responseStatements.history, liveParameters(owner, id, at)),
          );
        }),
    },
    steps: createStepRepository(database, dialect, conditions, readPage),
    decisions: createDecisionRepository(database, conditions, readPage),
    budgets: createBudgetRepository(database, dialect, conditions, readPage),
    rateLimits: createRateLimitRepository(database, dialect),
    adminTokens: createAdminTokenRepository(database, readPage),
    evidence: createEvidenceRepository(database, dialect, conditions, readPage),
    checkpoints: createCheckpointRepository(database, dialect, readPage),
    usage: createUsageRepository(database, dialect, conditions),
    renewLease: (renewal) => database.write(() => renewLease(dialect, renewal), anyway),
    lapsedSteps: (query) => database.read(() => lapsedSteps(dialect, query)),
  };
}

const sessions = { name: "sessions", columns: sessionColumns };

/** The id of the Session that a statement finds, if it belongs to this owner. */
function* ownSession(owner: Owner, statement: string, id: string): Script<string | null> {
  const row = yield* get(statement, { organization_id: owner.organizationId, id });
  const session = row === undefined ? null : sessionFromRow(row);
  return session && isOwnedBy(owner, session) ? session.id : null;
}

function liveParameters({ organizationId, userId, keyId }: Owner, id: string, at: number) {
  return { organization_id: organizationId, user_id: userId, key_id: keyId, id, at };
}

/** The parts of a Session and its ancestors that have messages of a range. */
function* transcriptOf(
  place: { readonly organizationId: string; readonly id: string },
  { from, to }: { readonly from: number; readonly to: number },
): Script<readonly TranscriptPart[] | null> {
  const last = yield* readById(sessions, place, sessionRecordFromRow);
  if (!last) return null;
  const earlier = yield* historyOf(last);
  const parts: TranscriptPart[] = [];
  for (const { session, end } of lineageOf({ session: (_, id) => earlier.get(id) ?? null }, last)) {
    const { organizationId: organization_id, id: session_id } = session;
    const parameters = { organization_id, session_id, end: Math.min(end, to), from };
    for (const row of yield* all(transcriptStatements.parts, parameters))
      parts.push(transcriptPart(partFromRow(row), end));
  }
  return parts;
}

/** The other Sessions that a Session's history is read from, by id. */
function* historyOf(session: SessionState): Script<ReadonlyMap<string, SessionState>> {
  const earlier = new Map<string, SessionState>();
  for (let at = session; at.historyFromSessionId !== null; ) {
    const name = { organization_id: at.organizationId, id: at.historyFromSessionId };
    const row = yield* get(openStepStatements.session, name);
    if (row === undefined) break;
    at = sessionRecordFromRow(row);
    earlier.set(at.id, at);
  }
  return earlier;
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
  if (steps.length === 0) return;
  // Settlements lock the Steps in this order, too, and wait meanwhile, so one statement updates them all.
  const named = steps
    .toSorted((a, b) => (a.stepId < b.stepId ? -1 : 1))
    .map(({ organizationId, stepId, outputTokens }) => [organizationId, stepId, outputTokens]);
  yield* run(dialect.updateProgress, { process_id, renewal, steps: JSON.stringify(named) });
}

function* lapsedSteps(
  dialect: SqlDialect,
  query: Parameters<Store["lapsedSteps"]>[0],
): Script<LapsedSteps> {
  const at = yield* timeOf(dialect, query);
  const { after, limit } = query;
  const rows = yield* all(leaseStatements.lapsed, { at, after: after ?? -1, limit });
  const steps: LapsedStep[] = [];
  const damaged: unknown[] = [];
  for (const row of rows)
    try {
      const outputTokens = readRow(row).integerOrNull("output_tokens");
      steps.push({ step: stepFromRow(row), outputTokens });
    } catch (error) {
      damaged.push(error);
    }
  const last = rows.length < limit ? undefined : rows.at(-1);
  return { steps, damaged, next: last === undefined ? null : readRow(last).integer("sequence") };
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

type ConnectionChange<Verb extends "set" | "remove" | "rewrap"> = Parameters<
  ConnectionRepository[Verb]
>[0];

function createConnectionRepository(
  database: ScriptDatabase,
  { locked }: SqlDialect,
): ConnectionRepository {
  const found = locked(connectionStatements.find);
  return {
    set: (change) => database.write(() => setConnection(found, change), anyway),
    get: (organizationId, gateway) => database.read(() => findConnection(organizationId, gateway)),
    async list(asked, paging) {
      const { text, parameters } = selectConnections(asked, paging);
      const rows = await database.read(() => select(text, parameters));
      return connectionPage(rows, paging);
    },
    // It returns whether it removed a row. A second run would return the opposite.
    remove: (change) => database.write(() => removeConnection(found, change), once),
    rewrap: (change) => database.write(() => rewrapConnection(change), anyway),
  };
}

function* setConnection(
  found: string,
  { connection, leaf, check }: ConnectionChange<"set">,
): Script<void> {
  const { organizationId: organization_id, gateway } = connection;
  const row = yield* get(found, { organization_id, gateway });
  const before = row === undefined ? null : connectionRows.fromRow(row);
  // It is set already if this is a repetition.
  if (before !== null && Buffer.compare(before.credential, connection.credential) === 0) return;
  check?.(before);
  if ((yield* run(connectionStatements.set, connectionRows.toRow(connection))) > 0)
    yield* insertLeaf(leaf);
}

function* findConnection(organizationId: string, gateway: string): Script<SealedConnection | null> {
  const row = yield* get(connectionStatements.find, { organization_id: organizationId, gateway });
  return row === undefined ? null : connectionRows.fromRow(row);
}

function* removeConnection(
  found: string,
  { organizationId, gateway, id, leaf, check }: ConnectionChange<"remove">,
): Script<boolean> {
  const place = { organization_id: organizationId, gateway, id };
  const row = yield* get(found, place);
  const before = row === undefined ? null : connectionRows.fromRow(row);
  if (before?.id !== id) return false;
  check?.(before);
  yield* run(connectionStatements.remove, place);
  yield* insertLeaf(leaf);
  return true;
}

function* rewrapConnection({
  organizationId,
  gateway,
  from,
  to,
  leaf,
}: ConnectionChange<"rewrap">): Script<boolean> {
  const place = { organization_id: organizationId, gateway, wrapped_key: to.wrappedKey };
  const change = { ...place, key_id: to.keyId, replaced_key: from };
  if ((yield* run(connectionStatements.rewrap, change)) === 0)
    return (yield* get(connectionStatements.isWrapped, place)) !== undefined;
  yield* insertLeaf(leaf);
  return true;
}

type PolicyNote = Parameters<EvidenceRepository["notePolicy"]>[0];

function createEvidenceRepository(
  database: ScriptDatabase,
  { locked }: SqlDialect,
  conditions: Conditions,
  readPage: ReadPage,
): EvidenceRepository {
  const versionToChange = locked(administrationStatements.policyVersion);
  return {
    list: ({ organizationId }, paging) => {
      const ofOrganization = {
        text: "organization_id = :organization_id",
        parameters: { organization_id: organizationId },
      };
      return readPage(lists.leaves, [ofOrganization], paging, leafFromRow);
    },
    changes: (query, paging) =>
      readPage(lists.changes, conditions.ofChanges(query), paging, leafFromRow),
    record: (leaf) => database.write(() => insertLeaf(leaf), anyway),
    async notePolicy(note) {
      const noted = await database.read(() => versionIn(administrationStatements.policyVersion));
      // Every start calls this; only a process that has something to write takes the lock.
      if (noted !== note.version)
        await database.write(() => notePolicy(versionToChange, note), anyway);
    },
  };
}

function* notePolicy(versionToChange: string, { version, leaf }: PolicyNote): Script<void> {
  const before = yield* versionIn(versionToChange);
  if (before === version) return;
  yield* run(administrationStatements.notePolicy, { policy_version: version });
  yield* insertLeaf(leaf(before));
}

function* versionIn(statement: string): Script<string | null> {
  return readRow(yield* get(statement, {})).textOrNull("policy_version");
}
