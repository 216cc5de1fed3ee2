import {
  decodeCursor,
  encodeCursor,
  type StorePage,
  type StorePaging,
  type Tenant,
} from "@tollgate/core/store";

interface TenantRow {
  readonly id: string;
  readonly organizationId: string;
}

/** Rows by time, and in the order they were written where that is the same, found by id. An id is unique within its organization only. */
export interface Table<Row extends TenantRow> {
  /** False, and nothing written, when the organization has the id already. */
  insert(row: Row): boolean;
  remove(row: Row): void;
  get(tenant: Tenant, id: string): Row | null;
  /** Every row of an organization. */
  newestFirst(organizationId: string): readonly Row[];
  /** All rows, oldest first. */
  rows(): Iterable<Row>;
  /** Matching rows, oldest first or newest first. */
  page(query: TableQuery<Row>, paging: StorePaging): StorePage<Row>;
}

interface TableQuery<Row> {
  readonly direction: "oldest-first" | "newest-first";
  readonly tenant: Tenant;
  readonly matches?: (row: Row) => boolean;
}

/** A row at its place in time. */
interface Entry<Row> {
  readonly time: number;
  readonly written: number;
  readonly row: Row;
}

/** `timeOf` sorts the rows: clocks differ and are set back, so that the order of writing alone does not say. */
export function createTable<Row extends TenantRow>(
  name: string,
  timeOf: (row: Row) => number = () => 0,
): Table<Row> {
  const entries: Entry<Row>[] = [];
  const byOrganization = new Map<string, Map<string, Entry<Row>>>();
  let writes = 0;

  const get = (tenant: Tenant, id: string): Row | null => {
    if (tenant !== null) return byOrganization.get(tenant)?.get(id)?.row ?? null;
    for (const rows of byOrganization.values()) {
      const entry = rows.get(id);
      if (entry) return entry.row;
    }
    return null;
  };
  const rowsOf = (organizationId: string): Map<string, Entry<Row>> => {
    const rows = byOrganization.get(organizationId) ?? new Map<string, Entry<Row>>();
    byOrganization.set(organizationId, rows);
    return rows;
  };
  const cursorOf = ({ time, written }: Entry<Row>): string =>
    encodeCursor(name, { order: time, tie: String(written) });

  return {
    get,
    newestFirst: (organizationId) =>
      entries
        .flatMap(({ row }) => (row.organizationId === organizationId ? [row] : []))
        .toReversed(),
    insert(row) {
      const rows = rowsOf(row.organizationId);
      if (rows.has(row.id)) return false;
      const entry = { time: timeOf(row), written: writes++, row };
      rows.set(row.id, entry);
      const last = entries.at(-1);
      if (!last || last.time <= entry.time) entries.push(entry);
      else entries.splice(placeOf(entries, entry), 0, entry);
      return true;
    },
    remove(row) {
      const rows = rowsOf(row.organizationId);
      const entry = rows.get(row.id);
      if (entry?.row !== row) return;
      rows.delete(row.id);
      entries.splice(placeOf(entries, entry), 1);
    },
    *rows() {
      for (const { row } of entries) yield row;
    },
    page({ direction, tenant, matches = () => true }, { cursor, limit }) {
      const step = direction === "oldest-first" ? 1 : -1;
      const data: Row[] = [];
      let last: Entry<Row> | null = null;
      for (let at = startOf(name, entries, { step, cursor }); ; at += step) {
        const entry = entries[at];
        if (!entry) return { data, nextCursor: null };
        const { row } = entry;
        if ((tenant !== null && row.organizationId !== tenant) || !matches(row)) continue;
        if (last && data.length === limit) return { data, nextCursor: cursorOf(last) };
        data.push(row);
        last = entry;
      }
    },
  };
}

/** Where a page begins: at one end, or beside the row the page before ended with. */
function startOf(
  name: string,
  entries: readonly Entry<unknown>[],
  { step, cursor }: { readonly step: 1 | -1; readonly cursor: string | null },
): number {
  if (cursor === null) return step === 1 ? 0 : entries.length - 1;
  const { order, tie } = decodeCursor(name, cursor);
  return placeOf(entries, { time: order, written: Number(tie) }) + (step === 1 ? 1 : -1);
}

/** How many entries come before this place. */
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

/** A page with each row as it is shown. */
export function mapPage<Row, Shown>(
  page: StorePage<Row>,
  show: (row: Row) => Shown,
): StorePage<Shown> {
  return { data: page.data.map(show), nextCursor: page.nextCursor };
}
