import { type Connection, queryTimeouts } from "../database/connection.ts";
import type { Database } from "../database/database.ts";
import { restOfSteps, stepsStorage } from "../database/postgres-dialect.ts";
import { tryPartitionLock } from "./partition-lock.ts";
import { boundAt, missingRanges, type PartitionRange, partitionName } from "./partition-range.ts";
import { exclusionPrefix, readPartitions } from "./read-partitions.ts";

/** A default partition of at most this many bytes is checked fast enough to block writes meanwhile. */
const smallRest = 67_108_864;

/**
 * How long the server may take to check that the default partition has no rows of a time range, in milliseconds. The check
 * reads every Step there once, and blocks no reads or writes.
 */
const validationTimeout = 1_800_000;

/** The steps towards missing partitions: remove a constraint, add one, validate it, create the partitions. */
const maxSteps = 4;

/** The result of one such step: nothing is left to do, or another step may follow. */
type Progress = "done" | "more";

/**
 * Creates missing partitions. For each one, the server checks that the default partition has none of its rows, and
 * blocks writes meanwhile. If the default partition is large, a constraint is added and validated first, which blocks
 * no writes.
 */
export async function makePartitions(
  database: Database,
  keep: number,
  small = smallRest,
): Promise<void> {
  const { schema } = database;
  for (let step = 0; step < maxSteps; step++) {
    const progress = await database.rearrange(async (_, connection) => {
      if (!(await tryPartitionLock(connection, schema))) return "done";
      return advance(connection, { schema, keep, small });
    });
    if (progress !== "more") return;
  }
}

async function advance(
  connection: Connection,
  {
    schema,
    keep,
    small,
  }: { readonly schema: string; readonly keep: number; readonly small: number },
): Promise<Progress> {
  const { now, ranges, restBytes, promise } = await readPartitions(connection, schema);
  const missing = await missingOf(connection, missingRanges(ranges, { now, keep }));
  const wanted = missing && promiseOf(missing.whole);
  const exec = (sql: string): Promise<void> => connection.exec(sql, queryTimeouts.migration);
  const alterRest = (change: string) => exec(`ALTER TABLE ${schema}.${restOfSteps} ${change}`);
  // The constraint is for another range: its process ended before it used it.
  if (promise && promise.name !== wanted?.name) {
    await alterRest(`DROP CONSTRAINT ${promise.name}`);
    return "more";
  }
  if (!missing || !wanted) return "done";
  if (promise?.isKept || restBytes <= small) {
    for (const range of missing.each) await exec(partitionText(schema, range));
    if (promise) await alterRest(`DROP CONSTRAINT ${promise.name}`);
    return "done";
  }
  if (!promise) await alterRest(`ADD ${wanted.text}`);
  else {
    await exec(`SET LOCAL statement_timeout = ${validationTimeout}`);
    await connection.exec(
      `ALTER TABLE ${schema}.${restOfSteps} VALIDATE CONSTRAINT ${promise.name}`,
      validationTimeout,
    );
  }
  return "more";
}

/**
 * Finds a Step of a time by looking into each organization that has Steps in the default partition: its index begins with
 * the organization.
 */
const stepOfRest = `WITH RECURSIVE found (id) AS (
    (SELECT organization_id FROM ${restOfSteps} ORDER BY organization_id LIMIT 1)
    UNION ALL
    SELECT (SELECT organization_id FROM ${restOfSteps} WHERE organization_id > o.id
      ORDER BY organization_id LIMIT 1) FROM found o WHERE o.id IS NOT NULL)
  SELECT r.id FROM found o CROSS JOIN LATERAL (
    SELECT id FROM ${restOfSteps} WHERE organization_id = o.id AND id >= :from AND id < :until LIMIT 1) AS r
  LIMIT 1`;

/** Null if nothing is missing, or if the default partition already has Steps of that time, which stay there. */
async function missingOf(connection: Connection, each: readonly PartitionRange[]) {
  const [first, last] = [each[0], each.at(-1)];
  if (!first || !last) return null;
  const whole = { from: first.from, until: last.until };
  const range = { from: boundAt(whole.from), until: boundAt(whole.until) };
  const found = await connection.query(stepOfRest, range, queryTimeouts.migration);
  return found.length > 0 ? null : { each, whole };
}

function promiseOf({ from, until }: PartitionRange): {
  readonly name: string;
  readonly text: string;
} {
  const [first, last] = [boundAt(from), boundAt(until)];
  const name = `${exclusionPrefix}${first}_${last}`.replaceAll("-", "");
  const check = `CHECK (id < '${first}' OR id >= '${last}')`;
  return { name, text: `CONSTRAINT ${name} ${check} NOT VALID` };
}

function partitionText(schema: string, range: PartitionRange): string {
  return `CREATE TABLE ${schema}.${partitionName(range)} PARTITION OF ${schema}.steps
    FOR VALUES FROM ('${boundAt(range.from)}') TO ('${boundAt(range.until)}') ${stepsStorage}`;
}
