import {
  decodeCursor,
  encodeCursor,
  type StorePage,
  type StorePaging,
  type Tenant,
  tieNumber,
} from "@tollgate/core/store";
import type { RowName } from "@tollgate/store-engine";
import { mapPage, pageOf, sealedPage } from "./page.ts";

/** Rows sorted by time, then by the order in which they were inserted. */
export interface Rows<Row extends RowName> {
  insert(row: Row): void;
  remove(row: Row): void;
  /** All rows, oldest first. */
  rows(): Iterable<Row>;
  /** Every matching row, oldest first. */
  all(query: Pick<RowsQuery<Row>, "tenant" | "matches">): readonly Row[];
  /** A page of matching rows. */
  page(query: RowsQuery<Row>, paging: StorePaging): StorePage<Row>;
  /** The same, with the cursor that continues after each row. */
  pageWithCursors(query: RowsQuery<Row>, paging: StorePaging): StorePage<RowWithCursor<Row>>;
}

/** Rows that are also found by id. An id is unique only within its organization. */
export interface Table<Row extends RowName> extends Omit<Rows<Row>, "insert"> {
  /** Returns false and writes nothing if the organization already has the id. */
  insert(row: Row): boolean;
  get(tenant: Tenant, id: string): Row | null;
}

interface RowsQuery<Row> {
  readonly direction: "oldest-first" | "newest-first";
  readonly tenant: Tenant;
  readonly matches?: (row: Row) => boolean;
  /** The secret that seals the cursors of an organization. Without it, cursors stay plain. */
  readonly secret?: string;
}

/** A row, and the cursor that continues after it. */
export interface RowWithCursor<Row> {
  readonly row: Row;
  readonly cursor: string;
}

/** A place in the order. */
interface Place {
  readonly time: number;
  /** The number of rows that were inserted before it. */
  readonly written: number;
}

/** Rows are sorted by `timeOf`. The order of insertion isn't enough, because clocks differ and can be set back. */
export function createRows<Row extends RowName>(
  name: string,
  timeOf: (row: Row) => number = () => 0,
): Rows<Row> {
  // Three lists instead of an object for each row, because the garbage collector looks at every object that a store keeps.
  const rows: Row[] = [];
  const times: number[] = [];
  const written: number[] = [];
  let writes = 0;

  /** The number of rows before a place. */
  const countBefore = (place: Place): number => {
    let [from, to] = [0, rows.length];
    while (from < to) {
      const middle = (from + to) >>> 1;
      const time = times[middle] ?? 0;
      if (time < place.time || (time === place.time && (written[middle] ?? 0) < place.written))
        from = middle + 1;
      else to = middle;
    }
    return from;
  };
  const cursorAt = (index: number): string =>
    encodeCursor(name, { order: times[index] ?? 0, tie: String(written[index]) });
  /** The index where a page starts: at one end, or right after the last row of the previous page, even if that row is gone. */
  const startOf = (cursor: string | null, step: 1 | -1): number => {
    if (cursor === null) return step === 1 ? 0 : rows.length - 1;
    const place = decodeCursor(name, cursor);
    const [time, last] = [place.order, tieNumber(place)];
    return step === 1
      ? countBefore({ time, written: last + 1 })
      : countBefore({ time, written: last }) - 1;
  };
  const rowAt = (index: number): Row => rows[index] as Row;
  const pageOfIndexes = (
    { direction, tenant, matches = () => true }: RowsQuery<Row>,
    paging: StorePaging,
  ): StorePage<number> => {
    const step = direction === "oldest-first" ? 1 : -1;
    const indexes = indexesFrom(startOf(paging.cursor, step), step, rows.length);
    const isShown = (index: number): boolean => isIn(tenant, rowAt(index)) && matches(rowAt(index));
    return pageOf(indexes, { isShown, cursorOf: cursorAt }, paging);
  };

  return {
    insert(row) {
      const time = timeOf(row);
      const place = { time, written: writes++ };
      const isNewest = time >= (times.at(-1) ?? time);
      const index = isNewest ? rows.length : countBefore(place);
      if (isNewest) {
        rows.push(row);
        times.push(time);
        written.push(place.written);
      } else {
        rows.splice(index, 0, row);
        times.splice(index, 0, time);
        written.splice(index, 0, place.written);
      }
    },
    remove(row) {
      const index = rows.indexOf(row, countBefore({ time: timeOf(row), written: 0 }));
      if (index < 0) return;
      for (const list of [rows, times, written]) list.splice(index, 1);
    },
    rows: () => rows,
    all: ({ tenant, matches = () => true }) =>
      rows.filter((row) => isIn(tenant, row) && matches(row)),
    page({ secret, ...query }, paging) {
      const plain = (from: StorePaging) => mapPage(pageOfIndexes(query, from), rowAt);
      const { tenant } = query;
      return secret === undefined
        ? plain(paging)
        : sealedPage({ name, tenant, secret }, paging, plain);
    },
    pageWithCursors: (query, paging) =>
      mapPage(pageOfIndexes(query, paging), (index) => ({
        row: rowAt(index),
        cursor: cursorAt(index),
      })),
  };
}

export function createTable<Row extends RowName>(
  name: string,
  timeOf?: (row: Row) => number,
): Table<Row> {
  const sorted = createRows(name, timeOf);
  const byOrganization = new Map<string, Map<string, Row>>();
  /** The last row found or inserted, because the operations of one change look up the same row repeatedly. */
  let latest: Row | null = null;

  const rowsOf = (organizationId: string): Map<string, Row> => {
    const known = byOrganization.get(organizationId);
    if (known) return known;
    const rows = new Map<string, Row>();
    byOrganization.set(organizationId, rows);
    return rows;
  };
  const find = (tenant: Tenant, id: string): Row | null => {
    if (tenant !== null) return byOrganization.get(tenant)?.get(id) ?? null;
    for (const rows of byOrganization.values()) {
      const row = rows.get(id);
      if (row) return row;
    }
    return null;
  };
  return {
    ...sorted,
    get(tenant, id) {
      if (latest?.id === id && latest.organizationId === tenant) return latest;
      const row = find(tenant, id);
      latest = row ?? latest;
      return row;
    },
    insert(row) {
      const rows = rowsOf(row.organizationId);
      if (rows.has(row.id)) return false;
      rows.set(row.id, row);
      sorted.insert(row);
      latest = row;
      return true;
    },
    remove(row) {
      const rows = rowsOf(row.organizationId);
      if (rows.get(row.id) !== row) return;
      rows.delete(row.id);
      sorted.remove(row);
      latest = null;
    },
  };
}

function* indexesFrom(from: number, step: 1 | -1, end: number): Iterable<number> {
  for (let index = from; index >= 0 && index < end; index += step) yield index;
}

function isIn(tenant: Tenant, { organizationId }: RowName): boolean {
  return tenant === null || organizationId === tenant;
}
