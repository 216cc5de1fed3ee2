import { readRow } from "@tollgate/store-sql";
import type { Connection } from "../database/connection.ts";

/** Takes the lock on changes of partitions without waiting. False if another transaction holds it. */
export async function tryPartitionLock(
  connection: Pick<Connection, "get">,
  schema: string,
): Promise<boolean> {
  const row = await connection.get(
    `SELECT CAST(pg_try_advisory_xact_lock(hashtextextended(:turn, 0)) AS INTEGER) AS taken`,
    { turn: `tollgate partitions of ${schema}` },
  );
  return readRow(row).integer("taken") === 1;
}
