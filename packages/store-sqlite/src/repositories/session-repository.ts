import type { Owner, SessionRepository } from "@tollgate/core/store";
import {
  type Conditions,
  lists,
  opening,
  type SessionRecord,
  sessionColumns,
  sessionFromRow,
  sessionRecordFromRow,
} from "@tollgate/store-sql";
import type { Database } from "../database/database.ts";
import { assignSession, foundBy } from "../verbs/assign-session.ts";
import { sweepTranscripts } from "../verbs/sweep-transcripts.ts";
import { readById } from "./read-by-id.ts";
import { readPage } from "./read-page.ts";
import { transcriptOf } from "./transcript-of.ts";

export function createSessionRepository(
  database: Database,
  conditions: Conditions,
): SessionRepository {
  const ownedBy = (owner: Owner, statement: string, id: string): Promise<SessionRecord | null> =>
    database.read((connection) => {
      const row = connection.get(statement, { organization_id: owner.organizationId, id });
      const session = row === undefined ? null : sessionRecordFromRow(row);
      return session?.userId === owner.userId && session.keyId === owner.keyId ? session : null;
    });
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
      database.read((connection) => {
        const assignment = assignSession(connection, lookup);
        return "code" in assignment ? null : foundBy(assignment);
      }),
    isOwned: async (owner, sessionId) =>
      (await ownedBy(owner, opening.session, sessionId)) !== null,
    ofTurn: async (owner, turnId) =>
      (await ownedBy(owner, opening.sessionOfTurn, turnId))?.id ?? null,
    sweep: (sweep) => database.erase((transaction) => sweepTranscripts(transaction, sweep)),
  };
}

const sessions = { name: "sessions", columns: sessionColumns };
