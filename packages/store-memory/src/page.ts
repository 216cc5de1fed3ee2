import {
  decodeCursor,
  defaultMaxScanned,
  encodeCursor,
  type StorePage,
  type StorePaging,
  type Tenant,
} from "@tollgate/core/store";
import { openCursor, sealCursor } from "@tollgate/store-engine";

/** A page of a list's rows. It ends when it is full, or has passed over as many rows as it may. */
export function pageOf<Row>(
  rows: Iterable<Row>,
  list: { readonly isShown: (row: Row) => boolean; readonly cursorOf: (row: Row) => string },
  { limit, maxScanned = defaultMaxScanned }: StorePaging,
): StorePage<Row> {
  const data: Row[] = [];
  let last: Row | null = null;
  let passed = 0;
  for (const row of rows) {
    const isShown = list.isShown(row);
    const isOver = passed === maxScanned || (isShown && data.length === limit);
    if (last !== null && isOver) return { data, nextCursor: list.cursorOf(last) };
    if (isShown) data.push(row);
    else passed += 1;
    last = row;
  }
  return { data, nextCursor: null };
}

/** Converts each row of a page. */
export function mapPage<Row, Item>(
  page: StorePage<Row>,
  convert: (row: Row) => Item,
): StorePage<Item> {
  return { data: page.data.map(convert), nextCursor: page.nextCursor };
}

/** A place in a list that is sorted for each page. */
export interface Place {
  readonly order: number;
  readonly tie: string;
}

/** A page of a list that no table keeps in order: sorts its rows for each page. */
export function sortedPage<Row>(
  list: {
    readonly name: string;
    readonly rows: readonly Row[];
    readonly matches?: (row: Row) => boolean;
    readonly placeOf: (row: Row) => Place;
    readonly compare: (a: Place, b: Place) => number;
  },
  paging: StorePaging,
): StorePage<Row> {
  const { name, placeOf, compare, matches = () => true } = list;
  const after = paging.cursor === null ? null : decodeCursor(name, paging.cursor);
  const entries = list.rows
    .map((row) => ({ row, place: placeOf(row) }))
    .filter(({ place }) => after === null || compare(after, place) < 0)
    .sort((a, b) => compare(a.place, b.place));
  const page = pageOf(
    entries,
    {
      isShown: ({ row }) => matches(row),
      cursorOf: ({ place }) => encodeCursor(name, place),
    },
    paging,
  );
  return mapPage(page, ({ row }) => row);
}

/**
 * Reads a page with cursors that tell an organization nothing about others. `page` reads one with plain cursors. Without a
 * tenant, the page is of all organizations, and its cursors stay plain.
 */
export function sealedPage<Row>(
  { name, tenant, secret }: SealedList,
  paging: StorePaging,
  page: (paging: StorePaging) => StorePage<Row>,
): StorePage<Row> {
  if (tenant === null) return page(paging);
  const seal = { secret, organizationId: tenant };
  const cursor = paging.cursor === null ? null : openCursor(name, paging.cursor, seal);
  const { data, nextCursor } = page({ ...paging, cursor });
  return { data, nextCursor: nextCursor === null ? null : sealCursor(name, nextCursor, seal) };
}

/** A list that is read for one organization, or for all. */
interface SealedList {
  readonly name: string;
  readonly tenant: Tenant;
  readonly secret: string;
}
