import { DatabaseSync } from "node:sqlite";
import { sqliteStore } from "@tollgate/store-sqlite";
import { fillingStatements, type Size, type Words } from "./history.ts";

const words: Words = {
  series: (count) =>
    `(WITH RECURSIVE series (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM series WHERE n + 1 < ${count})
      SELECT n FROM series)`,
  digest: (number) => `CAST(printf('%032d', ${number}) AS BLOB)`,
  bytes: (text) => `CAST(${text} AS BLOB)`,
  carriesPermits: true,
};

/** Makes a file with a history of this size; what it holds is never put at risk, so nothing is flushed. */
export async function fillSqlite(filename: string, size: Size): Promise<void> {
  const store = sqliteStore({ filename });
  await store.migrate();
  await store.close();
  const client = new DatabaseSync(filename);
  client.exec("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -200000");
  client.exec("BEGIN");
  for (const statement of fillingStatements(size, words)) client.exec(statement);
  client.exec("COMMIT");
  client.close();
}
