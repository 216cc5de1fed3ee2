import type {
  CounterDrift,
  Reconciliation,
  ResponseRepository,
  SessionRepository,
  StepSweep,
  SweepResult,
} from "@tollgate/core/store";
import {
  deleteResponse,
  findSession,
  sweepResponses,
  sweepSteps as sweepRest,
  sweepTranscripts,
} from "@tollgate/store-engine";
import { counterFromRow, readRow, type SqlParameters } from "@tollgate/store-sql";
import { queryTimeouts } from "./database/connection.ts";
import type { Database } from "./database/database.ts";
import { dropPartition } from "./partitions/drop-partition.ts";
import { makePartitions } from "./partitions/make-partitions.ts";

/** Finds Sessions as decisions see them, and erases their transcripts. */
export function createSessionRepository(
  database: Database,
): Pick<SessionRepository, "find" | "sweep"> {
  return {
    find: (lookup) => database.driver.ask((view) => findSession(view, lookup)),
    sweep: (sweep) =>
      database.driver.alone((view) => sweepTranscripts(view, sweep), inTurn(database, "sweeps")),
  };
}

export function createResponseRepository(
  database: Database,
): Pick<ResponseRepository, "delete" | "sweep"> {
  return {
    delete(deletion) {
      const { organizationId } = deletion.owner;
      return database.driver.alone((view) => deleteResponse(view, deletion), {
        evenIfDone: false,
        turn: turnToDelete(database, organizationId),
        locks: { responses: [{ organizationId, id: deletion.id }] },
      });
    },
    sweep: (query) =>
      database.driver.alone((view) => sweepResponses(view, query), inTurn(database, "responses")),
  };
}

/** Drops whole partitions of old Steps, and removes row by row what no partition holds. */
export async function sweepSteps(database: Database, sweep: StepSweep): Promise<SweepResult> {
  if (database.mayRearrange) {
    await makePartitions(database, sweep.keep);
    const dropped = await dropPartition(database, sweep);
    if (dropped !== null) return { removed: dropped, next: sweep.from };
  }
  return database.driver.alone((view) => sweepRest(view, sweep), inTurn(database, "sweeps"));
}

/** The name of a lock. A database may have several stores, each in its own schema. */
function lockName({ schema }: Pick<Database, "schema">, what: "sweeps" | "responses"): string {
  return `tollgate ${what} of ${schema}`;
}

const lockOf = (name: string): string => `hashtextextended(${name}, 0)`;

/**
 * Sweeps run in one process at a time, so none repeats the work of another. Responses are swept while none is deleted: each
 * removal may change what the others move.
 */
function inTurn(database: Database, what: "sweeps" | "responses") {
  const text = `SELECT pg_advisory_xact_lock(${lockOf(":turn")})`;
  return { evenIfDone: true, turn: [text, { turn: lockName(database, what) }] } as const;
}

/** Deletions run one at a time in an organization, and not during a sweep. */
function turnToDelete(
  database: Database,
  organizationId: string,
): readonly [string, SqlParameters] {
  const text = `SELECT pg_advisory_xact_lock_shared(${lockOf(":turn")}),
    pg_advisory_xact_lock(${lockOf(":own_turn")})`;
  const turn = lockName(database, "responses");
  return [text, { turn, own_turn: `${turn} in ${organizationId}` }];
}

/**
 * Compares every counter with its ledger, in one statement: the server reads while other work goes on in both processes, and
 * one statement sees one moment.
 */
export function reconcile(database: Database, limit: number): Promise<Reconciliation> {
  return database.read(async (connection) => {
    const read = (text: string) => connection.query(text, { limit }, queryTimeouts.ledger);
    const [counted] = await read(reconciliation.counters);
    const drift = await read(reconciliation.drift);
    return { counters: readRow(counted).integer("counters"), drift: drift.map(driftFromRow) };
  });
}

function driftFromRow(row: unknown): CounterDrift {
  const read = readRow(row);
  const ledger = { settled: read.integer("ledger_settled"), held: read.integer("ledger_held") };
  return { ...counterFromRow(row), ledger };
}

/** The largest amount that a counter stores. */
const maxSettled = Number.MAX_SAFE_INTEGER;

/** A pace depends on the time and has no ledger. */
const isCounted = "unit NOT IN ('requests_pace', 'tokens_pace')";

const reconciliation = {
  counters: `SELECT count(*) AS counters FROM budget_counters WHERE ${isCounted}`,
  /**
   * One statement, so it sees holds, corrections and counters at the same moment. It scans every hold once: holds are
   * indexed by Step, and a second index by counter would cost every request a write.
   */
  drift: `WITH corrected (organization_id, step_id, attempt, usd, tokens) AS (
      SELECT organization_id, step_id, held_by, sum(usd_delta), sum(tokens_delta) FROM corrections
      WHERE held_by IS NOT NULL GROUP BY organization_id, step_id, held_by),
    ledger (budget_id, subject, period_start, unit, settled, held) AS (
      SELECT h.budget_id, h.subject, h.period_start, min(h.unit),
        sum(coalesce(h.settled, 0) + CASE h.unit WHEN 'usd' THEN coalesce(c.usd, 0)
          WHEN 'tokens' THEN coalesce(c.tokens, 0) ELSE 0 END),
        sum(CASE WHEN h.settled IS NULL THEN h.amount ELSE 0 END)
      FROM holds h LEFT JOIN corrected c ON c.organization_id = h.organization_id
        AND c.step_id = h.step_id AND c.attempt = h.attempt
      WHERE h.${isCounted}
      GROUP BY h.budget_id, h.subject, h.period_start),
    compared AS (
      SELECT coalesce(c.budget_id, l.budget_id) AS budget_id, coalesce(c.subject, l.subject) AS subject,
        coalesce(c.period_start, l.period_start) AS period_start, coalesce(c.unit, l.unit) AS unit,
        coalesce(c.settled, 0) AS settled, coalesce(c.held, 0) AS held,
        CASE WHEN l.settled > ${maxSettled} THEN ${maxSettled} ELSE coalesce(l.settled, 0) END AS ledger_settled,
        coalesce(l.held, 0) AS ledger_held
      FROM (SELECT * FROM budget_counters WHERE ${isCounted}) c FULL JOIN ledger l ON l.budget_id = c.budget_id
        AND l.subject = c.subject AND l.period_start = c.period_start)
    SELECT * FROM compared WHERE settled <> ledger_settled OR held <> ledger_held
    ORDER BY budget_id, subject, period_start LIMIT :limit`,
} as const;
