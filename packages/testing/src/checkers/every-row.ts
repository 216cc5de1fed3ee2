import type { StorePage, StorePaging } from "@tollgate/core/store";

/** Reads a whole list. */
export async function everyRow<Row>(
  read: (paging: StorePaging) => Promise<StorePage<Row>>,
): Promise<readonly Row[]> {
  const rows: Row[] = [];
  let cursor: string | null = null;
  do {
    const page: StorePage<Row> = await read({ cursor, limit: 1_000 });
    rows.push(...page.data);
    cursor = page.nextCursor;
  } while (cursor !== null);
  return rows;
}
