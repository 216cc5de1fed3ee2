import {
  type DecisionRepository,
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
  continued,
  decisionColumns,
  decisionFromRow,
  lists,
  type PagedList,
  pageFrom,
  play,
  readRow,
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

/** Selects the sources of a key in each organization that has it, one after the other in the order of an index. */
export function selectSourcesOfKey(acrossOrganizations: boolean): string {
  const minSource = `SELECT min(s.source) FROM sessions s WHERE s.${continued} AND s.key_id = :key_id AND s.organization_id =`;
  const first = acrossOrganizations
    ? `SELECT k.organization_id, (${minSource} k.organization_id)
        FROM organizations o CROSS JOIN api_keys k
        WHERE k.organization_id = o.id AND k.id = :key_id`
    : `SELECT :organization_id, (${minSource} :organization_id)`;
  return `WITH RECURSIVE place (organization_id, source) AS (${first} UNION ALL
      SELECT organization_id, (${minSource} place.organization_id AND s.source > place.source)
      FROM place WHERE source IS NOT NULL)
    SELECT organization_id, source FROM place WHERE source IS NOT NULL`;
}

/** Lists the Sessions of each source of a key, which has few. An index across sources would change with every Step. */
function listByKey(
  database: Database,
  conditions: Conditions,
  query: SessionQuery & { readonly keyId: string },
  paging: StorePaging,
): Promise<StorePage<Session>> {
  const { organizationId, keyId } = query;
  return readSnapshot(database, (connection) => {
    const key = { organization_id: organizationId, key_id: keyId };
    const sources = connection.all(selectSourcesOfKey(organizationId === null), key).map((row) => {
      const place = readRow(row);
      const of = { organizationId: place.text("organization_id"), source: place.text("source") };
      return { list: lists.sessions, conditions: conditions.ofSessions({ ...query, ...of }) };
    });
    const page = playReads(
      connection,
      pageFrom({ organizationId, list: lists.sessions, sources }, paging, sqliteDialect),
    );
    return { ...page, data: page.data.map(sessionFromRow) };
  });
}

/** Reads decisions. Most are permits in the rows of their Steps. The others have rows of their own. */
export function createDecisionRepository(
  database: Database,
  conditions: Conditions,
): DecisionRepository {
  return {
    get: (organizationId, id) =>
      database.read((connection) => {
        const place = { organization_id: organizationId, id };
        const permit = connection.get(permitById(organizationId === null), place);
        if (permit !== undefined) return decisionFromRow(decisionRowOf(permit));
        const row = connection.get(decisionById(organizationId === null), place);
        return row === undefined ? null : decisionFromRow(row);
      }),
    async list(query, paging) {
      const ofPermits = conditions.ofPermits(query);
      const sources = [
        { list: lists.decisions, conditions: conditions.ofDecisions(query) },
        ...(ofPermits ? [{ list: permits, conditions: ofPermits, convert: decisionRowOf }] : []),
      ];
      const { organizationId } = query;
      const parts = { organizationId, list: lists.decisions, sources };
      const script = pageFrom(parts, paging, sqliteDialect);
      const page = await readSnapshot(database, (connection) => playReads(connection, script));
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

function permitById(acrossOrganizations: boolean): string {
  const text = selectById("steps", permitColumns, acrossOrganizations);
  return text.replace(":id", ":id AND r.permit IS NOT NULL");
}

function decisionById(acrossOrganizations: boolean): string {
  return selectById("decisions", decisionColumns, acrossOrganizations);
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
