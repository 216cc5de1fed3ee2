import type {
  Owner,
  Session,
  SessionQuery,
  SessionRepository,
  StorePage,
  StorePaging,
} from "@tollgate/core/store";
import {
  findSession,
  isOwnedBy,
  type SessionState,
  type SessionView,
  sweepTranscripts,
} from "@tollgate/store-engine";
import {
  type Conditions,
  continued,
  lists,
  pageOf,
  readById,
  readRow,
  SessionReads,
  selectPage,
  sessionColumns,
  sessionFromRow,
  sessionRecordFromRow,
} from "@tollgate/store-sql";
import type { Database } from "../database/database.ts";
import { playReads } from "../database/scripts.ts";
import { sqliteDialect } from "../database/sqlite-dialect.ts";
import { readSnapshot } from "./read-at-once.ts";
import { transcriptOf } from "./transcript-of.ts";

/** What is read of Sessions as decisions see them, what erases them, and lists; `listed` gives those that an index serves. */
export function createSessionRepository(
  database: Database,
  conditions: Conditions,
  listByIndex: SessionRepository["list"],
): Omit<SessionRepository, "get"> {
  const owned = async (
    owner: Owner,
    find: (sessions: SessionView) => SessionState | null,
  ): Promise<SessionState | null> => {
    const session = await database.read((connection) => find(new SessionReads(connection)));
    return session && isOwnedBy(owner, session) ? session : null;
  };
  return {
    list: (query, paging) => {
      const { keyId, source } = query;
      return keyId === undefined || source !== undefined
        ? listByIndex(query, paging)
        : listByKey(database, conditions, { ...query, keyId }, paging);
    },
    transcript: (organizationId, id, from = 0) =>
      database.read((connection) => {
        const place = { organizationId, id };
        const session = playReads(connection, readById(sessions, place, sessionRecordFromRow));
        return session && transcriptOf(connection, session, from);
      }),
    find: (lookup) =>
      database.read((connection) => findSession(new SessionReads(connection), lookup)),
    isOwned: async (owner, id) =>
      (await owned(owner, (sessions) => sessions.session(owner.organizationId, id))) !== null,
    findByTurn: async (owner, id) =>
      (await owned(owner, (sessions) => sessions.sessionOfTurn(owner.organizationId, id)))?.id ??
      null,
    sweep: (sweep) =>
      database.erase(({ carryOut }) => carryOut((view) => sweepTranscripts(view, sweep))),
  };
}

/** The sources of a key, one after the other, in each organization that has the key: an index has them in this order. */
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

/** Asks for each source, of which a key has few: an index of all of them would move with every Step. */
async function listByKey(
  database: Database,
  conditions: Conditions,
  query: SessionQuery & { readonly keyId: string },
  paging: StorePaging,
): Promise<StorePage<Session>> {
  const { organizationId, keyId } = query;
  const rows = await readSnapshot(database, (connection) => {
    const key = { organization_id: organizationId, key_id: keyId };
    return connection.all(selectSourcesOfKey(organizationId === null), key).flatMap((row) => {
      const place = readRow(row);
      const of = { organizationId: place.text("organization_id"), source: place.text("source") };
      const where = conditions.ofSessions({ ...query, ...of });
      const { text, parameters } = selectPage(lists.sessions, where, paging, sqliteDialect);
      return connection.query(text, parameters);
    });
  });
  return pageOf(lists.sessions, rows.sort(latestFirst), paging.limit, sessionFromRow);
}

function latestFirst(a: unknown, b: unknown): number {
  return readRow(b).integer("updated") - readRow(a).integer("updated");
}

const sessions = { name: "sessions", columns: sessionColumns };
