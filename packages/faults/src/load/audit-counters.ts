import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import type { Place } from "../stores/place.ts";

/** A counter right after one change of it, as the database saw it. */
export interface CounterState {
  /** The key that it counts. */
  readonly subject: string;
  /** Milliseconds since the epoch, on this machine's clock. */
  readonly at: number;
  readonly settled: number;
  readonly held: number;
  /** Whether the change took a hold. */
  readonly isHold: boolean;
}

/** Lets the database itself note every change of a counter. The store must have been migrated, and nothing may run. */
export async function auditCounters(place: Place): Promise<void> {
  if ("filename" in place) return void onSqlite(place.filename, (file) => file.exec(sqliteAudit));
  await onPostgres(place.url, (client) => client.query(postgresAudit(place.schema)));
}

/** What was noted, in order. */
export async function readAudit(place: Place): Promise<readonly CounterState[]> {
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

const sqliteNote = (old: string) => `INSERT INTO counter_audit (subject, at, settled, held, is_hold)
  VALUES (NEW.subject, CAST(unixepoch('subsec') * 1000 AS INTEGER), NEW.settled, NEW.held, NEW.held > ${old})`;

const sqliteAudit = `
  CREATE TABLE counter_audit (number INTEGER PRIMARY KEY, subject TEXT, at INTEGER, settled INTEGER, held INTEGER, is_hold INTEGER);
  CREATE TRIGGER note_insert AFTER INSERT ON budget_counters BEGIN ${sqliteNote("0")}; END;
  CREATE TRIGGER note_update AFTER UPDATE ON budget_counters BEGIN ${sqliteNote("OLD.held")}; END`;

const postgresAudit = (schema: string) => `
  CREATE TABLE ${schema}.counter_audit (number BIGSERIAL, subject TEXT, at BIGINT, settled BIGINT, held BIGINT, is_hold INT);
  CREATE FUNCTION ${schema}.note_counter() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO ${schema}.counter_audit (subject, at, settled, held, is_hold)
    VALUES (NEW.subject, floor(extract(epoch FROM clock_timestamp()) * 1000), NEW.settled, NEW.held,
      CASE WHEN TG_OP = 'INSERT' OR NEW.held > OLD.held THEN 1 ELSE 0 END);
    RETURN NULL; END $$;
  CREATE TRIGGER note_counter AFTER INSERT OR UPDATE ON ${schema}.budget_counters
    FOR EACH ROW EXECUTE FUNCTION ${schema}.note_counter()`;

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
