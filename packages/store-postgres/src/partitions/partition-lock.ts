import { readRow } from "@tollgate/store-sql";
import type { Connection } from "../database/connection.ts";

/** Whether it is this transaction's turn to change partitions: nobody waits for whoever is at it. */
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
