import {
  type DecisionRepository,
  type PolicyDecision,
  type ResponseRepository,
  type Session,
  type SessionQuery,
  type SessionRepository,
  type StorePage,
  type StorePaging,
  yieldToEventLoop,
} from "@tollgate/core/store";
import {
  deleteResponse,
  findSession,
  sweepResponses,
  sweepTranscripts,
} from "@tollgate/store-engine";
import {
  type Answer,
  type Ask,
  type Conditions,
  columnsOf,
  continued,
  decisionFromRow,
  find,
  lists,
  mergedPage,
  ownersOf,
  type PagedList,
  pageFrom,
  play,
  readRow,
  readWhere,
  type Script,
  type ScriptDatabase,
  selectById,
  sessionFromRow,
  viewSessions,
} from "@tollgate/store-sql";
import { rollBack, type SqliteConnection } from "./connection.ts";
import { countFitting, type ResponseSweep } from "./content-bytes.ts";
import type { Database } from "./database.ts";
import { sqliteDialect } from "./sqlite-dialect.ts";
import { permitParts } from "./step-row.ts";
import type { Transaction } from "./transaction.ts";

/** Plays the scripts that both SQL stores share. A SQLite transaction never has an unknown outcome, so none is repeated. */
export function scriptDatabaseOn(database: Database): ScriptDatabase {
  return {
    read: (script) => database.read((connection) => playReads(connection, script())),
    write: (script) =>
      database.write((transaction) => play(script(), (ask) => execute(transaction, ask))),
    // One transaction writes at a time, so numbers are committed in order.
    settled: async () => Number.MAX_SAFE_INTEGER,
  };
}

/** Plays a script that only reads. */
function playReads<Result>(
  connection: Pick<SqliteConnection, "all" | "query">,
  script: Script<Result>,
): Result {
  return play(script, (ask) => rowsFor(connection, ask));
}

const noRows: readonly unknown[] = [];

function rowsFor(connection: Pick<SqliteConnection, "all" | "query">, ask: Ask): Answer {
  if (ask.wants !== "rows") throw new TypeError("A read can't write.");
  const rows = ask.isConstant
    ? connection.all(ask.text, ask.parameters)
    : connection.query(ask.text, ask.parameters);
  return { rows, count: 0 };
}

function execute(transaction: Transaction, ask: Ask): Answer {
  switch (ask.wants) {
    case "changes":
      return { rows: noRows, count: transaction.run(ask.text, ask.parameters) };
    case "rows":
      return { rows: transaction.all(ask.text, ask.parameters), count: 0 };
    case "number":
      return { rows: noRows, count: transaction.next() };
    case "new budgets version":
      transaction.budgetsChanged();
      return { rows: noRows, count: 0 };
  }
}

/** Runs several reads on one snapshot of the database, even if another process writes meanwhile. */
export function readSnapshot<Result>(
  database: Database,
  read: (connection: SqliteConnection) => Result,
): Promise<Result> {
  return database.read((connection) => {
    connection.exec("BEGIN");
    try {
      const result = read(connection);
      connection.exec("COMMIT");
      return result;
    } catch (error) {
      rollBack(connection);
      throw error;
    }
  });
}

/** The Session methods that SQLite implements itself. `listByIndex` serves the lists that have an index. */
export function createSessionRepository(
  database: Database,
  conditions: Conditions,
  listByIndex: SessionRepository["list"],
): Pick<SessionRepository, "list" | "find" | "sweep"> {
  return {
    list: (query, paging) => {
      const { keyId, source } = query;
      return keyId === undefined || source !== undefined
        ? listByIndex(query, paging)
        : listByKey(database, conditions, { ...query, keyId }, paging);
    },
    find: (lookup) => database.read((connection) => findSession(viewSessions(connection), lookup)),
    sweep: (sweep) =>
      database.erase(({ carryOut }) => carryOut((view) => sweepTranscripts(view, sweep))),
  };
}

const minSource = `SELECT min(s.source) FROM sessions s
  WHERE s.${continued} AND s.key_id = :key_id AND s.organization_id = :organization_id`;

/** Selects the sources of a key, one after the other in the order of an index. */
export const selectSourcesOfKey = `WITH RECURSIVE place (source) AS (SELECT (${minSource}) UNION ALL
    SELECT (${minSource} AND s.source > place.source) FROM place WHERE source IS NOT NULL)
  SELECT source FROM place WHERE source IS NOT NULL`;

/** Lists the Sessions of each source of a key, which has few. An index across sources would change with every Step. */
async function listByKey(
  database: Database,
  conditions: Conditions,
  query: SessionQuery & { readonly keyId: string },
  paging: StorePaging,
): Promise<StorePage<Session>> {
  const { organizationId, keyId } = query;
  const owners: string[] = organizationId === null ? [] : [organizationId];
  if (organizationId === null)
    for await (const owner of ownersOf(scriptDatabaseOn(database), "api_keys", keyId))
      owners.push(owner);
  return readSnapshot(database, (connection) => {
    const sources = owners.flatMap((organizationId) => {
      const key = { organization_id: organizationId, key_id: keyId };
      return connection.all(selectSourcesOfKey, key).map((row) => {
        const of = { organizationId, source: readRow(row).text("source") };
        return { list: lists.sessions, conditions: conditions.ofSessions({ ...query, ...of }) };
      });
    });
    const parts = { organizationId, list: lists.sessions, sources };
    const page = playReads(connection, pageFrom(parts, paging));
    return { ...page, data: page.data.map(sessionFromRow) };
  });
}

/** Reads decisions. Most are permits in the rows of their Steps. The others have separate rows. */
export function createDecisionRepository(
  database: Database,
  conditions: Conditions,
): DecisionRepository {
  const scripts = scriptDatabaseOn(database);
  return {
    get: async (organizationId, id) =>
      (await readWhere(scripts, steps, { organizationId, id }, (organization_id) =>
        find(permitById, { organization_id, id }, permitFromRow),
      )) ??
      readWhere(scripts, decisions, { organizationId, id }, (organization_id) =>
        find(decisionById, { organization_id, id }, decisionFromRow),
      ),
    async list(query, paging) {
      const ofPermits = conditions.ofPermits(query);
      // First, because a permit moves to the other table when its Step is removed.
      const sources = [
        ...(ofPermits ? [{ list: permits, conditions: ofPermits, convert: decisionRowOf }] : []),
        { list: lists.decisions, conditions: conditions.ofDecisions(query) },
      ];
      const { organizationId } = query;
      const parts = { organizationId, list: lists.decisions, sources };
      const page =
        organizationId === null
          ? await mergedPage(scripts, parts, paging, sqliteDialect)
          : await readSnapshot(database, (connection) =>
              playReads(connection, pageFrom(parts, paging)),
            );
      return { ...page, data: page.data.map(decisionFromRow) };
    },
  };
}

const [verdictPart, factsPart, versionPart] = permitParts;

const permitColumns = [
  ...["organization_id", "decision_id", "user_id", "key_id", "opened_at", "sequence"],
  ...[`permit ${verdictPart} AS verdict`, `permit ${factsPart} AS facts`],
  `permit ${versionPart} AS policy_version`,
];

/** Permits, in the order of their Steps. */
const permits: PagedList = {
  ...lists.steps,
  name: lists.decisions.name,
  columns: permitColumns,
};

const steps = { name: "steps" };
const decisions = { name: "decisions", columns: columnsOf("decisions") };
const permitById = `${selectById("steps", permitColumns)} AND permit IS NOT NULL`;
const decisionById = selectById(decisions.name, decisions.columns);

function permitFromRow(row: unknown): PolicyDecision {
  return decisionFromRow(decisionRowOf(row));
}

/** Converts a permit in a Step's row to the row of a decision. */
function decisionRowOf(row: unknown): object {
  const read = readRow(row);
  return {
    ...Object(row),
    id: read.text("decision_id"),
    effect: "permit",
    at: read.integer("opened_at"),
    first_decision_id: null,
    refused_by: null,
    refusal: null,
  };
}

/** Deletes and sweeps responses. */
export function createResponseRepository(
  database: Database,
): Pick<ResponseRepository, "delete" | "sweep"> {
  return {
    delete: (deletion) =>
      database.erase(({ carryOut }) => carryOut((view) => deleteResponse(view, deletion))),
    sweep: (query) => sweepInParts(database, query),
  };
}

/** Removes expired responses and claims, in transactions that are short enough for the event loop. */
async function sweepInParts(
  database: Pick<Database, "erase">,
  { at, limit }: ResponseSweep,
): Promise<number> {
  for (let removed = 0; ; ) {
    const part = await database.erase((transaction) => {
      const rest = { at, limit: limit - removed };
      const fitting = { at, limit: countFitting(transaction, rest) };
      return transaction.carryOut((view) => sweepResponses(view, fitting));
    });
    removed += part;
    if (part === 0 || removed >= limit) return removed;
    await yieldToEventLoop();
  }
}
