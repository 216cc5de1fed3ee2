import {
  type CursorPlace,
  defaultMaxScanned,
  type EvidenceLeaf,
  type StorePage,
  type StorePaging,
  type Tenant,
} from "@tollgate/core/store";
import { type CursorSeal, openCursor, sealCursor } from "@tollgate/store-engine";
import type { SqlDialect } from "../dialect.ts";
import { leafToRow } from "../rows/leaf-row.ts";
import { readRow } from "../rows/row-reader.ts";
import { get, nextNumber, query, run, type Script, type ScriptDatabase } from "../script.ts";
import {
  type Condition,
  comparePlaces,
  type PagedList,
  pageOf,
  placeOf,
  selectEnd,
  selectPage,
  upTo,
} from "../select-page.ts";
import { administrationStatements } from "../statements/administration.ts";
import { selectById } from "../statements/transcript.ts";
import { writes } from "../writes.ts";

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
    const organizationId = organizationOf(conditions);
    const parts = { organizationId, list, sources: [{ list, conditions }] };
    const read = () => pageFrom(parts, paging, dialect);
    const page = await database.read(read);
    return { ...page, data: page.data.map(fromRow) };
  };
}

/** The organization whose rows the conditions select; null for those of all. */
function organizationOf(conditions: readonly Condition[]): Tenant {
  const named = conditions.map(({ parameters }) => parameters["organization_id"]);
  return named.find((id): id is string => typeof id === "string") ?? null;
}

/** Rows of a list that one table has. The lists of several sources have one order. */
export interface PageSource {
  readonly list: PagedList;
  readonly conditions: readonly Condition[];
  /** Converts a row of the table to a row of the list. */
  readonly convert?: (row: unknown) => unknown;
}

interface PageParts {
  /** Whose list it is; null for that of all organizations. */
  readonly organizationId: Tenant;
  readonly list: PagedList;
  readonly sources: readonly PageSource[];
}

/** Reads a page of a list from its tables, with cursors that tell an organization nothing about others. */
export function* pageFrom(
  parts: PageParts,
  paging: StorePaging,
  dialect: SqlDialect,
): Script<StorePage<unknown>> {
  const { organizationId, list } = parts;
  if (organizationId === null || !list.isSealed) return yield* plainPage(parts, paging, dialect);
  if (paging.cursor === null) {
    const page = yield* plainPage(parts, paging, dialect);
    if (page.nextCursor === null) return page;
    const seal = yield* sealOf(organizationId);
    return { ...page, nextCursor: sealCursor(list.name, page.nextCursor, seal) };
  }
  const seal = yield* sealOf(organizationId);
  const cursor = openCursor(list.name, paging.cursor, seal);
  const page = yield* plainPage(parts, { ...paging, cursor }, dialect);
  const { nextCursor: next } = page;
  return { ...page, nextCursor: next && sealCursor(list.name, next, seal) };
}

function* sealOf(organizationId: string): Script<CursorSeal> {
  const row = yield* get(administrationStatements.cursorSecret, {});
  return { secret: readRow(row).text("cursor_secret"), organizationId };
}

/**
 * Reads a page with plain cursors. A filter that no index serves is first tried on a few rows. If they don't fill
 * the page, it ends after `maxScanned` rows.
 */
function* plainPage(
  { list, sources }: Omit<PageParts, "organizationId">,
  paging: StorePaging,
  dialect: SqlDialect,
): Script<StorePage<unknown>> {
  const { limit, maxScanned = defaultMaxScanned } = paging;
  const few = Math.min(triedRows * limit, maxScanned);
  for (let scanned = few; ; scanned = maxScanned) {
    const end = yield* endOf(sources, { ...paging, maxScanned: scanned }, dialect);
    const rows = yield* rowsUpTo(end, { list, sources }, paging, dialect);
    if (end === null || rows.length > limit || scanned === maxScanned)
      return pageOf(list, rows, limit, (row) => row, end);
  }
}

/** How many rows are tried first for each row of the page. */
const triedRows = 10;

function isSifted({ conditions }: PageSource): boolean {
  return conditions.some(({ sifts }) => sifts);
}

/** Where a page ends that may scan so many rows; null if the list ends before, or if it scans only rows it shows. */
function* endOf(
  sources: readonly PageSource[],
  paging: StorePaging & { readonly maxScanned: number },
  dialect: SqlDialect,
): Script<CursorPlace | null> {
  let first: CursorPlace | null = null;
  for (const source of sources.filter(isSifted)) {
    const { text, parameters } = selectEnd(source.list, source.conditions, paging, dialect);
    const [row] = yield* query(text, parameters);
    const end = row === undefined ? null : placeOf(source.list, row);
    if (end && (!first || comparePlaces(source.list, end, first) < 0)) first = end;
  }
  return first;
}

/** The first rows of all sources, in the order of the list. */
function* rowsUpTo(
  end: CursorPlace | null,
  { list, sources }: Omit<PageParts, "organizationId">,
  paging: StorePaging,
  dialect: SqlDialect,
): Script<readonly unknown[]> {
  const found: unknown[] = [];
  for (const { list, conditions, convert } of sources) {
    const all = end ? [...conditions, upTo(list, end)] : conditions;
    const { text, parameters } = selectPage(list, all, paging, dialect);
    const rows = yield* query(text, parameters);
    found.push(...(convert ? rows.map(convert) : rows));
  }
  if (sources.length === 1) return found;
  return found.sort((a, b) => comparePlaces(list, placeOf(list, a), placeOf(list, b)));
}

/** Appends a leaf to the evidence. */
export function* insertLeaf(leaf: EvidenceLeaf): Script<void> {
  yield* run(writes.leaf.statement, leafToRow(leaf, yield* nextNumber()));
}
