import type {
  Owner,
  ResponseRepository,
  SessionRepository,
  StepSweep,
  SweepResult,
} from "@tollgate/core/store";
import {
  deleteResponse,
  findSession,
  type SessionState,
  sweepResponses,
  sweepSteps as sweepRest,
  sweepTranscripts,
} from "@tollgate/store-engine";
import {
  historyFromRows,
  openStepStatements,
  responseFromRow,
  responseStatements,
  type SqlParameters,
  sessionRecordFromRow,
} from "@tollgate/store-sql";
import type { Database } from "./database/database.ts";
import { dropPartition } from "./partitions/drop-partition.ts";
import { makePartitions } from "./partitions/make-partitions.ts";

/** Finds Sessions as decisions see them, and erases their transcripts. */
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

export function createResponseRepository(database: Database): ResponseRepository {
  return {
    get: (owner, id, at) =>
      database.read(async (connection) => {
        const row = await connection.get(responseStatements.get, liveParameters(owner, id, at));
        return row === undefined ? null : responseFromRow(row);
      }),
    history: (owner, id, at) =>
      database.read(async (connection) => {
        const rows = await connection.all(
          responseStatements.history,
          liveParameters(owner, id, at),
        );
        return historyFromRows(rows);
      }),
    delete(deletion) {
      const { organizationId } = deletion.owner;
      return database.driver.alone((view) => deleteResponse(view, deletion), {
        evenIfDone: false,
        turn: turnToDelete(organizationId),
        locks: { responses: [{ organizationId, id: deletion.id }] },
      });
    },
    sweep: (query) =>
      database.driver.alone((view) => sweepResponses(view, query), sweepingResponses),
  };
}

function liveParameters({ organizationId, userId, keyId }: Owner, id: string, at: number) {
  return { organization_id: organizationId, user_id: userId, key_id: keyId, id, at };
}

/** Drops whole partitions of old Steps, and removes row by row what no partition holds. */
export async function sweepSteps(database: Database, sweep: StepSweep): Promise<SweepResult> {
  if (database.mayRearrange) {
    await makePartitions(database, sweep.keep);
    const dropped = await dropPartition(database, sweep);
    if (dropped !== null) return { removed: dropped, more: true };
  }
  return database.driver.alone((view) => sweepRest(view, sweep), sweeping);
}

const lock = (turn: string, number: number): string => `hashtextextended(${turn}, ${number})`;

/** Sweeps run in one process at a time, so none repeats the work of another. */
const sweeping = {
  evenIfDone: true,
  turn: [`SELECT pg_advisory_xact_lock(${lock("'sweep'", 2)})`, {}],
} as const;

/** Responses are swept while none is deleted: each removal may change what the others move. */
const sweepingResponses = {
  evenIfDone: true,
  turn: [`SELECT pg_advisory_xact_lock(${lock("'responses'", 2)})`, {}],
} as const;

/** Deletions run one at a time in an organization, and not during a sweep. */
function turnToDelete(organizationId: string): readonly [string, SqlParameters] {
  const text = `SELECT pg_advisory_xact_lock_shared(${lock("'responses'", 2)}),
    pg_advisory_xact_lock(${lock(":organization_id", 1)})`;
  return [text, { organization_id: organizationId }];
}
