import type { RemovedSteps, StepSweep } from "@tollgate/core/store";
import { readRow } from "@tollgate/store-sql";
import { type Connection, queryTimeouts } from "../database/connection.ts";
import type { Database } from "../database/database.ts";
import { PostgresFailure } from "../database/failure.ts";
import { tryPartitionLock } from "./partition-lock.ts";
import { boundAt, type PartitionRange } from "./partition-range.ts";
import { readPartitions } from "./read-partitions.ts";

interface Partition extends PartitionRange {
  readonly name: string;
}

/**
 * Drops the oldest partition if all its Steps are past their retention, and writes a leaf for each organization with
 * the number removed. Returns how many Steps were removed. Returns null if no partition is due, another process is at
 * work, or the table was in use for longer than requests can wait.
 */
export async function dropPartition(database: Database, sweep: StepSweep): Promise<number | null> {
  const { schema } = database;
  return database.rearrange(async (_, connection) => {
    if (!(await tryPartitionLock(connection, schema))) return null;
    const { now, ranges } = await readPartitions(connection, schema);
    for (const partition of ranges) {
      if (partition.until > sweep.at - sweep.keep) return null;
      const counts = await countsOf(connection, schema, partition, sweep);
      // If a gateway's clock is far ahead, a dropped empty partition of a future time would just be created again.
      if (!counts || (counts.length === 0 && partition.until > now)) continue;
      await writeLeaves(connection, schema, counts, sweep);
      await drop(connection, schema, partition);
      return counts.reduce((sum, { count }) => sum + count, 0);
    }
    return null;
  });
}

/**
 * The number of each organization's Steps in a partition. Null if one of them is open, too young because its clock ran
 * ahead, or of an organization with Steps that aren't folded.
 */
async function countsOf(
  connection: Connection,
  schema: string,
  partition: Partition,
  { at, keep, unfolded }: StepSweep,
): Promise<readonly RemovedSteps[] | null> {
  if (await hasOpenStep(connection, partition)) return null;
  const held = [...unfolded.keys()];
  if (held.length > 0 && (await hasStepOf(connection, schema, partition, held))) return null;
  const rows = await connection.query(
    `SELECT organization_id, count(*) AS count, max(opened_at) AS youngest
      FROM ${schema}.${partition.name} GROUP BY organization_id ORDER BY organization_id`,
    {},
    queryTimeouts.migration,
  );
  const counts = rows.map(readRow);
  if (counts.some((row) => row.integer("youngest") >= at - keep)) return null;
  return counts.map((row) => ({
    organizationId: row.text("organization_id"),
    count: row.integer("count"),
  }));
}

async function hasOpenStep(
  connection: Connection,
  { from, until }: PartitionRange,
): Promise<boolean> {
  const bounds = { from: boundAt(from), until: boundAt(until) };
  const row = await connection.get(
    "SELECT 1 AS found FROM open_steps WHERE step_id >= :from AND step_id < :until LIMIT 1",
    bounds,
  );
  return row !== undefined;
}

/** Looks each organization up in an index: a partition may have any number of Steps, and none of theirs. */
async function hasStepOf(
  connection: Connection,
  schema: string,
  { name }: Partition,
  organizations: readonly string[],
): Promise<boolean> {
  const row = await connection.get(
    `SELECT 1 AS found FROM json_array_elements_text(:organizations) AS o (id)
      CROSS JOIN LATERAL (SELECT id FROM ${schema}.${name} WHERE organization_id = o.id ORDER BY id LIMIT 1) AS s
      LIMIT 1`,
    { organizations: JSON.stringify(organizations) },
  );
  return row !== undefined;
}

/** How many leaves a statement writes. With one for each, the sealing of all logs would wait for as many round trips. */
const leavesPerStatement = 500;

async function writeLeaves(
  connection: Connection,
  schema: string,
  counts: readonly RemovedSteps[],
  { leaf }: StepSweep,
): Promise<void> {
  for (let at = 0; at < counts.length; at += leavesPerStatement) {
    const leaves = counts.slice(at, at + leavesPerStatement).map((removed) => {
      const { hash, ...rest } = leaf(removed);
      return { ...rest, hash: Buffer.from(hash).toString("hex") };
    });
    await connection.all(insertLeaves(schema), { leaves: JSON.stringify(leaves) });
  }
}

function insertLeaves(schema: string): string {
  return `INSERT INTO leaves (organization_id, sequence, id, kind, at, meta, hash)
    SELECT l."organizationId", nextval('${schema}.sequence'), l.id, l.kind, l.at, l.meta, decode(l.hash, 'hex')
    FROM json_to_recordset(CAST(:leaves AS JSON))
      AS l ("organizationId" TEXT, id TEXT, kind TEXT, at BIGINT, meta TEXT, hash TEXT)`;
}

/** All other transactions wait from here on, so exactly the counted rows are removed. */
async function drop(connection: Connection, schema: string, partition: Partition): Promise<void> {
  const name = `${schema}.${partition.name}`;
  await connection.exec(`LOCK TABLE ${schema}.steps, ${name} IN ACCESS EXCLUSIVE MODE`);
  if (await hasOpenStep(connection, partition))
    throw new PostgresFailure("an old Step opened while its partition was about to be dropped");
  await connection.exec(`DROP TABLE ${name}`);
}
