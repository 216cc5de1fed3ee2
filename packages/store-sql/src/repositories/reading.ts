import {
  type CursorPlace,
  defaultMaxScanned,
  type EvidenceLeaf,
  type StorePage,
  type StorePaging,
  type Tenant,
  yieldToEventLoop,
} from "@tollgate/core/store";
import { type CursorSeal, openCursor, sealCursor } from "@tollgate/store-engine";
import { type Conditions, createConditions } from "../conditions.ts";
import type { SqlDialect } from "../dialect.ts";
import { leafToRow } from "../rows/leaf-row.ts";
import { readRow } from "../rows/row-reader.ts";
import {
  all,
  find,
  get,
  nextNumber,
  query,
  run,
  type Script,
  type ScriptDatabase,
} from "../script.ts";
import {
  type Condition,
  comparePlaces,
  type PagedList,
  type PageSource,
  pageOf,
  placeOf,
  selectEnd,
  selectPage,
  triedRows,
  upTo,
} from "../select-page.ts";
import { administrationStatements } from "../statements/administration.ts";
import { selectById, selectOwners } from "../statements/transcript.ts";
import { writes } from "../writes.ts";
import { mergedPage } from "./merged-page.ts";

/** Reads one row of an organization by its id; null if it does not exist. */
export function readById<Record>(
  table: { readonly name: string; readonly columns: readonly string[] },
  { organizationId, id }: { readonly organizationId: string; readonly id: string },
  fromRow: (row: unknown) => Record,
): Script<Record | null> {
  const text = selectById(table.name, table.columns);
  return find(text, { organization_id: organizationId, id }, fromRow);
}

/** Reads from the organization that has a row with this id, which is looked for in all of them if none is given. */
export async function readWhere<Record>(
  database: Pick<ScriptDatabase, "read">,
  table: { readonly name: string },
  { organizationId, id }: { readonly organizationId: Tenant; readonly id: string },
  read: (organizationId: string) => Script<Record | null>,
): Promise<Record | null> {
  if (organizationId !== null) return database.read(() => read(organizationId));
  for await (const owner of ownersOf(database, table.name, id)) {
    const found = await database.read(() => read(owner));
    if (found !== null) return found;
  }
  return null;
}

/** How many organizations are looked at before other work of the process runs. */
const organizationsPerTurn = 1_000;

/** The organizations that have a row with this id. Every key begins with the organization, so it looks into each. */
export async function* ownersOf(
  database: Pick<ScriptDatabase, "read">,
  table: string,
  id: string,
): AsyncGenerator<string> {
  const limit = organizationsPerTurn;
  for (let after = ""; ; ) {
    const from = { after, id, limit };
    const rows = (await database.read(() => all(selectOwners(table), from))).map(readRow);
    for (const row of rows) if (row.textOrNull("found") !== null) yield row.text("id");
    if (rows.length < limit) return;
    after = rows.at(-1)?.text("id") ?? "";
    await yieldToEventLoop();
  }
}

/** The database of a repository, and how to read lists from it. */
export interface Access {
  readonly database: ScriptDatabase;
  readonly dialect: SqlDialect;
  readonly conditions: Conditions;
  readonly readPage: ReadPage;
}

/** Reads pages of lists. */
type ReadPage = <Record>(
  list: PagedList,
  conditions: readonly Condition[],
  paging: StorePaging,
  fromRow: (row: unknown) => Record,
) => Promise<StorePage<Record>>;

export function createAccess(database: ScriptDatabase, dialect: SqlDialect): Access {
  const readPage: ReadPage = async (list, conditions, paging, fromRow) => {
    const organizationId = organizationOf(conditions);
    const parts = { organizationId, list, sources: [{ list, conditions }] };
    const page =
      organizationId === null && list.byOrganization
        ? await mergedPage(database, parts, paging, dialect)
        : await database.read(() => pageFrom(parts, paging));
    return { ...page, data: page.data.map(fromRow) };
  };
  return { database, dialect, conditions: createConditions(dialect), readPage };
}

/** The organization whose rows the conditions select; null for those of all. */
function organizationOf(conditions: readonly Condition[]): Tenant {
  const named = conditions.map(({ parameters }) => parameters["organization_id"]);
  return named.find((id): id is string => typeof id === "string") ?? null;
}

interface PageParts {
  /** Whose list it is; null for a list that belongs to no organization. */
  readonly organizationId: Tenant;
  readonly list: PagedList;
  readonly sources: readonly PageSource[];
}

/** Reads a page of a list from its tables, with cursors that tell an organization nothing about others. */
export function* pageFrom(parts: PageParts, paging: StorePaging): Script<StorePage<unknown>> {
  const { organizationId, list } = parts;
  if (organizationId === null || !list.isSealed) return yield* plainPage(parts, paging);
  if (paging.cursor === null) {
    const page = yield* plainPage(parts, paging);
    if (page.nextCursor === null) return page;
    const seal = yield* sealOf(organizationId);
    return { ...page, nextCursor: sealCursor(list.name, page.nextCursor, seal) };
  }
  const seal = yield* sealOf(organizationId);
  const cursor = openCursor(list.name, paging.cursor, seal);
  const page = yield* plainPage(parts, { ...paging, cursor });
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
): Script<StorePage<unknown>> {
  const { limit, maxScanned = defaultMaxScanned } = paging;
  const few = Math.min(triedRows * limit, maxScanned);
  for (let scanned = few; ; scanned = maxScanned) {
    const end = yield* endOf(sources, { ...paging, maxScanned: scanned });
    const rows = yield* rowsUpTo(end, { list, sources }, paging);
    if (end === null || rows.length > limit || scanned === maxScanned)
      return pageOf(list, rows, limit, (row) => row, end);
  }
}

function isSifted({ conditions }: PageSource): boolean {
  return conditions.some(({ sifts }) => sifts);
}

/** Where a page ends that may scan so many rows; null if the list ends before, or if it scans only rows it shows. */
function* endOf(
  sources: readonly PageSource[],
  paging: StorePaging & { readonly maxScanned: number },
): Script<CursorPlace | null> {
  let first: CursorPlace | null = null;
  for (const source of sources.filter(isSifted)) {
    const { text, parameters } = selectEnd(source.list, source.conditions, paging);
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
): Script<readonly unknown[]> {
  const found: unknown[] = [];
  for (const { list, conditions, convert } of sources) {
    const whole = end ? [...conditions, upTo(list, end)] : conditions;
    const { text, parameters } = selectPage(list, whole, paging);
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
