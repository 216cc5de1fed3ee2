import type { StorePage, StorePaging } from "@tollgate/core/store";
import { type Condition, type PagedList, pageOf, selectPage } from "@tollgate/store-sql";
import type { Database } from "../database/database.ts";
import { postgresDialect } from "../database/postgres-dialect.ts";

/** Reads one page of a list. */
export async function readPage<Record>(
  database: Database,
  list: PagedList,
  conditions: readonly Condition[],
  paging: StorePaging,
  fromRow: (row: unknown) => Record,
): Promise<StorePage<Record>> {
  const { text, parameters } = selectPage(list, conditions, paging, postgresDialect);
  const rows = await database.read((connection) => connection.query(text, parameters));
  return pageOf(list, rows, paging.limit, fromRow);
}
