import type { EvidenceLeaf, StorePage, StorePaging, Tenant } from "@tollgate/core/store";
import type { SqlDialect } from "../dialect.ts";
import { leafToRow } from "../rows/leaf-row.ts";
import { get, nextNumber, query, run, type Script, type ScriptDatabase } from "../script.ts";
import { type Condition, type PagedList, pageOf, selectPage } from "../select-page.ts";
import { openStepStatements } from "../statements/open-step.ts";
import { selectById } from "../statements/transcript.ts";

/** Reads one row by its id, in one organization or in any; null if it does not exist. */
export function* readById<Record>(
  table: { readonly name: string; readonly columns: readonly string[] },
  { organizationId, id }: { readonly organizationId: Tenant; readonly id: string },
  fromRow: (row: unknown) => Record,
): Script<Record | null> {
  const text = selectById(table.name, table.columns, organizationId === null);
  const row = yield* get(text, { organization_id: organizationId, id });
  return row === undefined ? null : fromRow(row);
}

/** Reads pages of lists. */
export type ReadPage = <Record>(
  list: PagedList,
  conditions: readonly Condition[],
  paging: StorePaging,
  fromRow: (row: unknown) => Record,
) => Promise<StorePage<Record>>;

export function createReadPage(database: ScriptDatabase, dialect: SqlDialect): ReadPage {
  return async (list, conditions, paging, fromRow) => {
    const { text, parameters } = selectPage(list, conditions, paging, dialect);
    const rows = await database.read(() => query(text, parameters));
    return pageOf(list, rows, paging.limit, fromRow);
  };
}

/** Appends a leaf to the evidence. */
export function* insertLeaf(leaf: EvidenceLeaf): Script<void> {
  yield* run(openStepStatements.insertLeaf, leafToRow(leaf, yield* nextNumber()));
}
