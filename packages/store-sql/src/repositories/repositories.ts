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
  find,
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
import { type Access, createAccess, insertLeaf, readById, readWhere } from "./reading.ts";
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
  const access = createAccess(database, dialect);
  const { conditions, readPage } = access;
  return {
    keys: createKeyRepository(access),
    connections: createConnectionRepository(access),
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
        database.read(() =>
          find(responseStatements.get, liveParameters(owner, id, at), responseRows.fromRow),
        ),
      history: (owner, id, at) =>
        database.read(function* () {
          return historyFromRows(
            yield* all(responseStatements.history, liveParameters(owner, id, at)),
          );
        }),
    },
    steps: createStepRepository(access),
    decisions: createDecisionRepository(access),
    budgets: createBudgetRepository(access),
    rateLimits: createRateLimitRepository(access),
    adminTokens: createAdminTokenRepository(access),
    evidence: createEvidenceRepository(access),
    checkpoints: createCheckpointRepository(access),
    usage: createUsageRepository(access),
    renewLease: (renewal) => database.write(() => renewLease(dialect, renewal), anyway),
    lapsedSteps: (query) => database.read(() => lapsedSteps(dialect, query)),
  };
}

const sessions = { name: "sessions", columns: sessionColumns };

/** The id of the Session that a statement finds, if it belongs to this owner. */
function* ownSession(owner: Owner, statement: string, id: string): Script<string | null> {
  const name = { organization_id: owner.organizationId, id };
  const session = yield* find(statement, name, sessionFromRow);
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

function createConnectionRepository({ database, dialect }: Access): ConnectionRepository {
  const lockedOne = dialect.locked(connectionStatements.find);
  return {
    set: (change) => database.write(() => setConnection(lockedOne, change), anyway),
    get: (organization_id, gateway) =>
      database.read(() => findConnection(connectionStatements.find, { organization_id, gateway })),
    async list(asked, paging) {
      const { text, parameters } = selectConnections(asked, paging);
      const rows = await database.read(() => select(text, parameters));
      return connectionPage(rows, paging);
    },
    // It returns whether it removed a row. A second run would return the opposite.
    remove: (change) => database.write(() => removeConnection(lockedOne, change), once),
    rewrap: (change) => database.write(() => rewrapConnection(change), anyway),
  };
}

function findConnection(
  statement: string,
  place: { readonly organization_id: string; readonly gateway: string },
): Script<SealedConnection | null> {
  return find(statement, place, connectionRows.fromRow);
}

function* setConnection(
  lockedOne: string,
  { connection, leaf, check }: ConnectionChange<"set">,
): Script<void> {
  const { organizationId: organization_id, gateway } = connection;
  const before = yield* findConnection(lockedOne, { organization_id, gateway });
  // It is set already if this is a repetition.
  if (before !== null && Buffer.compare(before.credential, connection.credential) === 0) return;
  check?.(before);
  if ((yield* run(connectionStatements.set, connectionRows.toRow(connection))) > 0)
    yield* insertLeaf(leaf);
}

function* removeConnection(
  lockedOne: string,
  { organizationId, gateway, id, leaf, check }: ConnectionChange<"remove">,
): Script<boolean> {
  const place = { organization_id: organizationId, gateway, id };
  const before = yield* findConnection(lockedOne, place);
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

function createEvidenceRepository({
  database,
  dialect,
  conditions,
  readPage,
}: Access): EvidenceRepository {
  const versionToChange = dialect.locked(administrationStatements.policyVersion);
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
