import type { Owner, SessionRepository } from "@tollgate/core/store";
import {
  findSession,
  isOwnedBy,
  type SessionRecord,
  type SessionView,
  sweepTranscripts,
} from "@tollgate/store-engine";
import { readById, sessionColumns, sessionRecordFromRow } from "@tollgate/store-sql";
import type { Database } from "../database/database.ts";
import { readNow } from "../database/scripts.ts";
import { SessionReads } from "../driver/read-sessions.ts";
import { transcriptOf } from "./transcript-of.ts";

/** What is read of Sessions as decisions see them, and what erases them. */
export function createSessionRepository(
  database: Database,
): Omit<SessionRepository, "get" | "list"> {
  const owned = async (
    owner: Owner,
    find: (sessions: SessionView) => SessionRecord | null,
  ): Promise<SessionRecord | null> => {
    const session = await database.read((connection) => find(new SessionReads(connection)));
    return session && isOwnedBy(owner, session) ? session : null;
  };
  return {
    transcript: (organizationId, id, from = 0) =>
      database.read((connection) => {
        const place = { organizationId, id };
        const session = readNow(connection, readById(sessions, place, sessionRecordFromRow));
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
