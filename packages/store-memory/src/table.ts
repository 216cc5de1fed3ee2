import {
  decodeCursor,
  encodeCursor,
  type StorePage,
  type StorePaging,
  type Tenant,
  tieNumber,
} from "@tollgate/core/store";
import type { RowName } from "@tollgate/store-engine";
import { mapPage, pageOf } from "./page.ts";

/** Rows sorted by time, then by the order in which they were inserted. */
export interface Rows<Row extends RowName> {
  insert(row: Row): Entry<Row>;
  remove(entry: Entry<Row>): void;
  /** All rows, oldest first. */
  rows(): Iterable<Row>;
  /** Every matching row, oldest first. */
  all(query: Omit<RowsQuery<Row>, "direction">): readonly Row[];
  /** A page of matching rows. */
  page(query: RowsQuery<Row>, paging: StorePaging): StorePage<Row>;
  /** The cursor that continues after a row, in either direction. */
  cursorOf(entry: Entry<Row>): string;
}

/** Rows that are also found by id. An id is unique only within its organization. */
export interface Table<Row extends RowName> extends Pick<Rows<Row>, "rows" | "all" | "page"> {
  /** Returns false and writes nothing if the organization already has the id. */
  insert(row: Row): boolean;
  remove(row: Row): void;
  get(tenant: Tenant, id: string): Row | null;
  cursorOf(row: Row): string;
}

interface RowsQuery<Row> {
  readonly direction: "oldest-first" | "newest-first";
  readonly tenant: Tenant;
  readonly matches?: (row: Row) => boolean;
}

/** A row and its place in the order. */
interface Entry<Row> {
  readonly time: number;
  readonly written: number;
  readonly row: Row;
}

/** Rows are sorted by `timeOf`. The order of insertion isn't enough, because clocks differ and can be set back. */
export function createRows<Row extends RowName>(
  name: string,
  timeOf: (row: Row) => number = () => 0,
): Rows<Row> {
  const entries: Entry<Row>[] = [];
  let writes = 0;

  const cursorOf = ({ time, written }: Entry<Row>): string =>
    encodeCursor(name, { order: time, tie: String(written) });

  return {
    insert(row) {
      const entry = { time: timeOf(row), written: writes++, row };
      const last = entries.at(-1);
      if (!last || last.time <= entry.time) entries.push(entry);
      else entries.splice(placeOf(entries, entry), 0, entry);
      return entry;
    },
    remove: (entry) => void entries.splice(placeOf(entries, entry), 1),
    cursorOf,
    *rows() {
      for (const { row } of entries) yield row;
    },
    all: ({ tenant, matches }) =>
      entries.flatMap(({ row }) => (isIn(tenant, row) && (matches?.(row) ?? true) ? [row] : [])),
    page({ direction, tenant, matches = () => true }, paging) {
      const step = direction === "oldest-first" ? 1 : -1;
      const rows = entriesFrom(entries, startOf(name, entries, { step, ...paging }), step);
      const isShown = ({ row }: Entry<Row>): boolean => isIn(tenant, row) && matches(row);
      return mapPage(pageOf(rows, { isShown, cursorOf }, paging), ({ row }) => row);
    },
  };
}

export function createTable<Row extends RowName>(
  name: string,
  timeOf?: (row: Row) => number,
): Table<Row> {
  const sorted = createRows(name, timeOf);
  const byOrganization = new Map<string, Map<string, Entry<Row>>>();
  /** The last row found or inserted, because the operations of one change look up the same row repeatedly. */
  let latest: Row | null = null;

  const rowsOf = (organizationId: string): Map<string, Entry<Row>> => {
    const known = byOrganization.get(organizationId);
    if (known) return known;
    const rows = new Map<string, Entry<Row>>();
    byOrganization.set(organizationId, rows);
    return rows;
  };
  const find = (tenant: Tenant, id: string): Row | null => {
    if (tenant !== null) return byOrganization.get(tenant)?.get(id)?.row ?? null;
    for (const rows of byOrganization.values()) {
      const entry = rows.get(id);
      if (entry) return entry.row;
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
      rows.set(row.id, sorted.insert(row));
      latest = row;
      return true;
    },
    remove(row) {
      const rows = rowsOf(row.organizationId);
      const entry = rows.get(row.id);
      if (entry?.row !== row) return;
      rows.delete(row.id);
      sorted.remove(entry);
      latest = null;
    },
    cursorOf({ organizationId, id }) {
      const entry = rowsOf(organizationId).get(id);
      return entry ? sorted.cursorOf(entry) : "";
    },
  };
}

function* entriesFrom<One>(entries: readonly One[], from: number, step: 1 | -1): Iterable<One> {
  for (let at = from; ; at += step) {
    const entry = entries[at];
    if (!entry) return;
    yield entry;
  }
}

function isIn(tenant: Tenant, { organizationId }: RowName): boolean {
  return tenant === null || organizationId === tenant;
}

/** The index where a page starts: at one end, or right after the last row of the previous page, even if that row is gone. */
function startOf(
  name: string,
  entries: readonly Entry<unknown>[],
  { step, cursor }: { readonly step: 1 | -1; readonly cursor: string | null },
): number {
  if (cursor === null) return step === 1 ? 0 : entries.length - 1;
  const place = decodeCursor(name, cursor);
  const { order } = place;
  const written = tieNumber(place);
  return step === 1
    ? placeOf(entries, { time: order, written: written + 1 })
    : placeOf(entries, { time: order, written }) - 1;
}

/** The number of entries before this place. */
function placeOf(
  entries: readonly Entry<unknown>[],
  { time, written }: Pick<Entry<unknown>, "time" | "written">,
): number {
  let [from, to] = [0, entries.length];
  while (from < to) {
    const middle = (from + to) >>> 1;
    const entry = entries[middle];
    if (entry && (entry.time < time || (entry.time === time && entry.written < written)))
      from = middle + 1;
    else to = middle;
  }
  return from;
}
