import type { Owner, SessionRepository } from "@tollgate/core/store";
import { findSession, type SessionState, sweepTranscripts } from "@tollgate/store-engine";
import { openStepStatements, sessionRecordFromRow } from "@tollgate/store-sql";
import type { Database } from "../database/database.ts";
import { sweeping } from "../statements/locking.ts";

/** What is read of Sessions as decisions see them, and what erases them. */
export function createSessionRepository(
  database: Database,
): Omit<SessionRepository, "get" | "list" | "transcript"> {
  const ownedBy = (owner: Owner, statement: string, id: string): Promise<SessionState | null> =>
    database.read(async (connection) => {
      const row = await connection.get(statement, { organization_id: owner.organizationId, id });
      const session = row === undefined ? null : sessionRecordFromRow(row);
      return session?.userId === owner.userId && session.keyId === owner.keyId ? session : null;
    });
  return {
    find: (lookup) => database.driver.ask((view) => findSession(view, lookup)),
    isOwned: async (owner, sessionId) =>
      (await ownedBy(owner, openStepStatements.session, sessionId)) !== null,
    findByTurn: async (owner, turnId) =>
      (await ownedBy(owner, openStepStatements.sessionOfTurn, turnId))?.id ?? null,
    sweep: (sweep) => database.driver.alone((view) => sweepTranscripts(view, sweep), sweeping),
  };
}
