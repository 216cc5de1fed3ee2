import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import type { DatabaseLocation } from "../stores/database-location.ts";

/** A counter right after one change of it, as the database saw it. */
export interface CounterState {
  /** The key that it counts for. */
  readonly subject: string;
  /** Milliseconds since the epoch, on this machine's clock. */
  readonly at: number;
  readonly settled: number;
  readonly held: number;
  /** Whether the change took a hold. */
  readonly isHold: boolean;
}

/**
 * Makes the database itself record every change of a counter of this budget or rate limit. The store must have been
 * migrated, and nothing may run.
 */
export async function auditCounters(
  place: DatabaseLocation,
  budgetId = exhaustedBudget,
): Promise<void> {
  if ("filename" in place)
    return void onSqlite(place.filename, (file) => file.exec(sqliteAudit(budgetId)));
  await onPostgres(place.url, (client) => client.query(postgresAudit(place.schema, budgetId)));
}

/** Reads the recorded changes in order. */
export async function readAudit(place: DatabaseLocation): Promise<readonly CounterState[]> {
  const columns = "subject, at, settled, held, is_hold";
  const rows: readonly object[] =
    "filename" in place
      ? onSqlite(place.filename, (file) =>
          file.prepare(`SELECT ${columns} FROM counter_audit ORDER BY number`).all(),
        )
      : await onPostgres(place.url, async (client) => {
          const audit = `SELECT ${columns} FROM ${place.schema}.counter_audit ORDER BY number`;
          return (await client.query<object>(audit)).rows;
        });
  return rows.map((row) => ({
    subject: String(Reflect.get(row, "subject")),
    at: Number(Reflect.get(row, "at")),
    settled: Number(Reflect.get(row, "settled")),
    held: Number(Reflect.get(row, "held")),
    isHold: Number(Reflect.get(row, "is_hold")) === 1,
  }));
}

/** The budget that a load exhausts; every other budget has room. */
const exhaustedBudget = "each-key";

const isAudited = (budgetId: string): string =>
  `NEW.budget_id = '${budgetId.replaceAll("'", "''")}'`;

const sqliteNote = (old: string) => `INSERT INTO counter_audit (subject, at, settled, held, is_hold)
  VALUES (NEW.subject, CAST(unixepoch('subsec') * 1000 AS INTEGER), NEW.settled, NEW.held, NEW.held > ${old})`;

const sqliteAudit = (budgetId: string): string => `
  CREATE TABLE counter_audit (number INTEGER PRIMARY KEY, subject TEXT, at INTEGER, settled INTEGER, held INTEGER, is_hold INTEGER);
  CREATE TRIGGER note_insert AFTER INSERT ON budget_counters WHEN ${isAudited(budgetId)}
    BEGIN ${sqliteNote("0")}; END;
  CREATE TRIGGER note_update AFTER UPDATE ON budget_counters WHEN ${isAudited(budgetId)}
    BEGIN ${sqliteNote("OLD.held")}; END`;

const postgresAudit = (schema: string, budgetId: string): string => `
  CREATE TABLE ${schema}.counter_audit (number BIGSERIAL, subject TEXT, at BIGINT, settled BIGINT, held BIGINT, is_hold INT);
  CREATE FUNCTION ${schema}.note_counter() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO ${schema}.counter_audit (subject, at, settled, held, is_hold)
    VALUES (NEW.subject, floor(extract(epoch FROM clock_timestamp()) * 1000), NEW.settled, NEW.held,
      CASE WHEN TG_OP = 'INSERT' OR NEW.held > OLD.held THEN 1 ELSE 0 END);
    RETURN NULL; END $$;
  CREATE TRIGGER note_counter AFTER INSERT OR UPDATE ON ${schema}.budget_counters
    FOR EACH ROW WHEN (${isAudited(budgetId)}) EXECUTE FUNCTION ${schema}.note_counter()`;

/** The sums of the ledger, computed by the database alone, without any product code. */
export interface LedgerSums {
  readonly holds: number;
  /** Counters that differ from the sum of their settled holds, or that hold something although nothing runs. */
  readonly drift: number;
}

/** Adds up the ledger of a store where nothing runs and nothing was corrected. */
export async function readLedgerSums(place: DatabaseLocation): Promise<LedgerSums> {
  const of = (table: string): string => ("filename" in place ? table : `${place.schema}.${table}`);
  const sums = `SELECT (SELECT count(*) FROM ${of("holds")}) AS holds, count(*) AS drift
    FROM ${of("budget_counters")} c FULL JOIN (SELECT budget_id, subject, period_start, sum(settled) AS settled,
        sum(CASE WHEN settled IS NULL THEN 1 ELSE 0 END) AS open
      FROM ${of("holds")} GROUP BY budget_id, subject, period_start) h
    ON h.budget_id = c.budget_id AND h.subject = c.subject AND h.period_start = c.period_start
    WHERE c.settled IS NULL OR h.settled IS NULL OR c.settled <> h.settled OR c.held <> 0 OR h.open <> 0`;
  const row: unknown =
    "filename" in place
      ? onSqlite(place.filename, (file) => file.prepare(sums).get())
      : await onPostgres(place.url, async (client) => (await client.query(sums)).rows[0]);
  if (typeof row !== "object" || row === null) throw new Error("The ledger is empty.");
  return { holds: Number(Reflect.get(row, "holds")), drift: Number(Reflect.get(row, "drift")) };
}

function onSqlite<Result>(filename: string, use: (file: DatabaseSync) => Result): Result {
  const file = new DatabaseSync(filename);
  try {
    return use(file);
  } finally {
    file.close();
  }
}

async function onPostgres<Result>(
  url: string,
  use: (client: pg.Client) => Promise<Result>,
): Promise<Result> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}
