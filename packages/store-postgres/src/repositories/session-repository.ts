import type { Owner, SessionRepository } from "@tollgate/core/store";
import type { SessionRecord } from "@tollgate/store-engine";
import {
  opening,
  readById,
  readRow,
  sessionColumns,
  sessionRecordFromRow,
} from "@tollgate/store-sql";
import type { Database } from "../database/database.ts";
import { readLater } from "../database/scripts.ts";
import { sweepTranscripts } from "../verbs/sweep-transcripts.ts";
import { transcriptOf } from "./transcript-of.ts";

/** What is read of Sessions as decisions see them, and what erases them. */
export function createSessionRepository(
  database: Database,
): Omit<SessionRepository, "get" | "list"> {
  const ownedBy = (owner: Owner, statement: string, id: string): Promise<SessionRecord | null> =>
    database.read(async (connection) => {
      const row = await connection.get(statement, { organization_id: owner.organizationId, id });
      const session = row === undefined ? null : sessionRecordFromRow(row);
      return session?.userId === owner.userId && session.keyId === owner.keyId ? session : null;
    });
  return {
    transcript: (organizationId, id, from = 0) =>
      database.read(async (connection) => {
        const place = { organizationId, id };
        const session = await readLater(
          connection,
          readById(sessions, place, sessionRecordFromRow),
        );
        return session && (await transcriptOf(connection, session, from));
      }),
    find: ({ owner, source, transcript }) =>
      database.read(async (connection) => {
        const row = await connection.get(database.findSession, {
          organization_id: owner.organizationId,
          user_id: owner.userId,
          key_id: owner.keyId,
          source,
          named_session_id: transcript.sessionId,
          named_turn_id: transcript.turnId,
          considered_session_id: transcript.alsoConsider,
          chain: transcript.chain,
        });
        const read = readRow(row);
        const sessionId = read.textOrNull("found_id");
        return sessionId === null
          ? null
          : {
              sessionId,
              commonLength: read.integer("found_length"),
              dataClasses: read.json("found_classes"),
            };
      }),
    isOwned: async (owner, sessionId) =>
      (await ownedBy(owner, opening.session, sessionId)) !== null,
    ofTurn: async (owner, turnId) =>
      (await ownedBy(owner, opening.sessionOfTurn, turnId))?.id ?? null,
    sweep: (sweep) =>
      database.write((transaction) => sweepTranscripts(transaction, sweep), { evenIfDone: true }),
  };
}

const sessions = { name: "sessions", columns: sessionColumns };
