import type { BudgetCounter, BudgetCounterKey } from "@tollgate/core/store";
import type {
  Ledger,
  LedgerChunk,
  LedgerCorrection,
  LedgerReads,
  LedgerStep,
  RowName,
} from "@tollgate/store-engine";
import { counterFromRow, readRow } from "@tollgate/store-sql";
import type { SqliteConnection } from "./connection.ts";
import { embeddedHolds, holdsFromText } from "./step-row.ts";

/** The types of a ledger in SQLite. */
interface SqliteLedger {
  readonly steps: StepsPlace;
  /** The number of the last correction. */
  readonly corrections: number;
  readonly counters: BudgetCounterKey;
  readonly step: RowName;
}

/**
 * Where a reading of the Steps is. It first reads those that it finds at its start, by their names: removing a Step moves its
 * holds to another table under the same name. Then it reads those that opened later, in the order of their rows.
 * It misses a Step that opened later and is removed before it is read: a reading takes seconds, so retention must be longer.
 */
interface StepsPlace {
  /** The last name. Null once all of them are read. */
  readonly name: RowName | null;
  /** The last row in order. Later Steps come after it, unless it was removed: then rows may reuse its number. */
  readonly row: { readonly number: number; readonly sequence: number };
  /** Steps up to this number of the store's sequence are read by name, or were read in order already. */
  readonly sequence: number;
}

/** The ledger of the counters. `read` runs reads on one snapshot. */
export function ledgerOf(
  read: <Result>(work: (connection: SqliteConnection) => Result) => Promise<Result>,
): Ledger<SqliteLedger> {
  return { read: (work) => read((connection) => work(readsOn(connection))) };
}

const stepColumns = "organization_id, id, outcome = 'open' AS is_open, held, sequence";
const keptHolds = `SELECT organization_id, step_id AS id, 0 AS is_open, ${embeddedHolds} AS held,
  0 AS sequence FROM kept_holds`;

/** Statements that read the ledger and the counters in chunks. */
export const ledgerStatements = {
  lastRow: "SELECT rowid AS number, sequence FROM steps ORDER BY rowid DESC LIMIT 1",
  byName: `SELECT * FROM (
      SELECT * FROM (SELECT ${stepColumns} FROM steps INDEXED BY sqlite_autoindex_steps_1
        WHERE (organization_id, id) > (:organization_id, :id)
        ORDER BY organization_id, id LIMIT :limit)
      UNION ALL SELECT * FROM (${keptHolds}
        WHERE (organization_id, step_id) > (:organization_id, :id)
        GROUP BY organization_id, step_id ORDER BY organization_id, step_id LIMIT :limit))
    ORDER BY organization_id, id LIMIT :limit`,
  rowNumbered: "SELECT sequence FROM steps WHERE rowid = :number",
  inOrder: `SELECT rowid AS number, ${stepColumns} FROM steps WHERE rowid > :number
    ORDER BY rowid LIMIT :limit`,
  step: `SELECT ${stepColumns} FROM steps WHERE organization_id = :organization_id AND id = :id
    UNION ALL SELECT * FROM (${keptHolds}
      WHERE organization_id = :organization_id AND step_id = :id GROUP BY organization_id, step_id)`,
  corrections: `SELECT organization_id, step_id, held_by, usd_delta, tokens_delta, sequence
    FROM corrections WHERE sequence > :sequence ORDER BY sequence LIMIT :limit`,
  counters: `SELECT * FROM budget_counters
    WHERE (budget_id, subject, period_start) > (:budget_id, :subject, :period_start)
    ORDER BY budget_id, subject, period_start LIMIT :limit`,
  counter: `SELECT * FROM budget_counters
    WHERE budget_id = :budget_id AND subject = :subject AND period_start = :period_start`,
} as const;

const firstName: RowName = { organizationId: "", id: "" };
const firstCounter: BudgetCounterKey = { budgetId: "", subject: "", periodStart: 0 };

function readsOn(connection: SqliteConnection): LedgerReads<SqliteLedger> {
  return {
    steps: (after, limit) => {
      const place = after ?? placeAtStart(connection);
      return place.name === null
        ? stepsInOrder(connection, place, limit)
        : stepsByName(connection, { ...place, name: place.name }, limit);
    },
    corrections(after, limit) {
      const rows = connection.all(ledgerStatements.corrections, { sequence: after ?? 0, limit });
      const last = rows.at(-1);
      return {
        rows: rows.map((row) => correctionFrom(connection, row)),
        end: last === undefined ? after : readRow(last).integer("sequence"),
        isLast: rows.length < limit,
      };
    },
    counters(after, limit) {
      const place = counterParameters(after ?? firstCounter);
      const rows = connection
        .all(ledgerStatements.counters, { ...place, limit })
        .map(counterFromRow);
      return { rows, end: rows.at(-1) ?? after, isLast: rows.length < limit };
    },
    step: (name) => stepNamed(connection, name),
    counter(key): BudgetCounter | null {
      const row = connection.get(ledgerStatements.counter, counterParameters(key));
      return row === undefined ? null : counterFromRow(row);
    },
  };
}

function placeAtStart(connection: SqliteConnection): StepsPlace {
  const last = connection.get(ledgerStatements.lastRow, {});
  if (last === undefined) return { name: firstName, row: { number: 0, sequence: 0 }, sequence: 0 };
  const read = readRow(last);
  const row = { number: read.integer("number"), sequence: read.integer("sequence") };
  return { name: firstName, row, sequence: row.sequence };
}

type StepsChunk = LedgerChunk<LedgerStep<RowName>, StepsPlace>;

function stepsByName(
  connection: SqliteConnection,
  place: StepsPlace & { readonly name: RowName },
  limit: number,
): StepsChunk {
  const rows = connection.all(ledgerStatements.byName, { ...nameParameters(place.name), limit });
  const steps = rows.map(stepFrom);
  const last = steps.at(-1);
  return {
    rows: steps.filter(({ sequence }) => sequence <= place.sequence),
    end: { ...place, name: last === undefined || rows.length < limit ? null : last.name },
    isLast: false,
  };
}

function stepsInOrder(connection: SqliteConnection, place: StepsPlace, limit: number): StepsChunk {
  const { number, sequence } = place.row;
  const known = connection.get(ledgerStatements.rowNumbered, { number });
  const isKept = known !== undefined && readRow(known).integer("sequence") === sequence;
  // Without it, reads all rows again. The number of its change tells whether a Step is a later one.
  const rows = connection.all(ledgerStatements.inOrder, { number: isKept ? number : 0, limit });
  const later = rows.map(stepFrom).filter((step) => step.sequence > place.sequence);
  const last = rows.at(-1);
  return {
    rows: later,
    end:
      last === undefined
        ? place
        : {
            name: null,
            row: {
              number: readRow(last).integer("number"),
              sequence: readRow(last).integer("sequence"),
            },
            sequence: later.at(-1)?.sequence ?? place.sequence,
          },
    isLast: rows.length < limit,
  };
}

type ReadStep = ReturnType<typeof stepFrom>;

function stepNamed(connection: SqliteConnection, name: RowName): Omit<ReadStep, "sequence"> {
  const row = connection.get(ledgerStatements.step, nameParameters(name));
  return row === undefined ? { name, isOpen: false, holds: [] } : stepFrom(row);
}

function stepFrom(row: unknown) {
  const read = readRow(row);
  const name = { organizationId: read.text("organization_id"), id: read.text("id") };
  return {
    name,
    isOpen: read.integer("is_open") === 1,
    holds: holdsFromText(
      { organizationId: name.organizationId, stepId: name.id },
      read.textOrNull("held"),
    ),
    sequence: read.integer("sequence"),
  };
}

/** It counts for the holds of the attempt that took them. */
function correctionFrom(connection: SqliteConnection, row: unknown): LedgerCorrection {
  const read = readRow(row);
  const name = { organizationId: read.text("organization_id"), id: read.text("step_id") };
  const heldBy = read.integerOrNull("held_by");
  const holds = heldBy === null ? [] : stepNamed(connection, name).holds;
  return {
    delta: { usd: read.integer("usd_delta"), tokens: read.integer("tokens_delta") },
    holds: holds.filter(({ attempt }) => attempt === heldBy),
  };
}

function nameParameters({ organizationId, id }: RowName) {
  return { organization_id: organizationId, id };
}

function counterParameters({ budgetId, subject, periodStart }: BudgetCounterKey) {
  return { budget_id: budgetId, subject, period_start: periodStart };
}
