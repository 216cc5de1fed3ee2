import type { Owner, SessionRepository } from "@tollgate/core/store";
import {
  findSession,
  isOwnedBy,
  type SessionRecord,
  type SessionView,
  sweepTranscripts,
} from "@tollgate/store-engine";
import {
  type Conditions,
  lists,
  sessionColumns,
  sessionFromRow,
  sessionRecordFromRow,
} from "@tollgate/store-sql";
import type { Database } from "../database/database.ts";
import { SessionReads } from "../driver/read-sessions.ts";
import { readById } from "./read-by-id.ts";
import { readPage } from "./read-page.ts";
import { transcriptOf } from "./transcript-of.ts";

export function createSessionRepository(
  database: Database,
  conditions: Conditions,
): SessionRepository {
  const owned = async (
    owner: Owner,
    find: (sessions: SessionView) => SessionRecord | null,
  ): Promise<SessionRecord | null> => {
    const session = await database.read((connection) => find(new SessionReads(connection)));
    return session && isOwnedBy(owner, session) ? session : null;
  };
  return {
    get: (organizationId, id) =>
      database.read((connection) =>
        readById(connection, sessions, { organizationId, id }, sessionFromRow),
      ),
    list: (query, paging) =>
      readPage(database, lists.sessions, conditions.ofSessions(query), paging, sessionFromRow),
    transcript: (organizationId, id, from = 0) =>
      database.read((connection) => {
        const session = readById(
          connection,
          sessions,
          { organizationId, id },
          sessionRecordFromRow,
        );
        return session && transcriptOf(connection, session, from);
      }),
    find: (lookup) =>
      database.read((connection) => findSession(new SessionReads(connection), lookup)),
    isOwned: async (owner, id) =>
      (await owned(owner, (sessions) => sessions.session(owner.organizationId, id))) !== null,
    ofTurn: async (owner, id) =>
      (await owned(owner, (sessions) => sessions.sessionOfTurn(owner.organizationId, id)))?.id ??
      null,
    sweep: (sweep) =>
      database.erase(({ carryOut }) => carryOut((view) => sweepTranscripts(view, sweep))),
  };
}

const sessions = { name: "sessions", columns: sessionColumns };
