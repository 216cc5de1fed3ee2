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

/** Rows in the order they were written, found by id. An id is unique within its organization only. */
export interface Table<Row extends TenantRow> {
  /** False, and nothing written, when the organization has the id already. */
  insert(row: Row): boolean;
  get(tenant: Tenant, id: string): Row | null;
  /** Matching rows, oldest first or newest first. */
  page(query: TableQuery<Row>, paging: StorePaging): StorePage<Row>;
}

interface TableQuery<Row> {
  readonly direction: "oldest-first" | "newest-first";
  readonly tenant: Tenant;
  readonly matches?: (row: Row) => boolean;
}

export function createTable<Row extends TenantRow>(name: string): Table<Row> {
  const rows: Row[] = [];
  const byId = new Map<string, Row[]>();

  const get = (tenant: Tenant, id: string): Row | null =>
    byId.get(id)?.find((row) => tenant === null || row.organizationId === tenant) ?? null;

  return {
    get,
    insert(row) {
      if (get(row.organizationId, row.id)) return false;
      rows.push(row);
      byId.set(row.id, [...(byId.get(row.id) ?? []), row]);
      return true;
    },
    page({ direction, tenant, matches = () => true }, { cursor, limit }) {
      const step = direction === "oldest-first" ? 1 : -1;
      const start = direction === "oldest-first" ? 0 : rows.length - 1;
      const data: Row[] = [];
      let last = cursor === null ? start - step : decodeCursor(name, cursor).order;
      for (let at = last + step; at >= 0 && at < rows.length; at += step) {
        const row = rows[at];
        if (!row || (tenant !== null && row.organizationId !== tenant) || !matches(row)) continue;
        if (data.length === limit)
          return { data, nextCursor: encodeCursor(name, { order: last, tie: "" }) };
        data.push(row);
        last = at;
      }
      return { data, nextCursor: null };
    },
  };
}

/** A page with each row as it is shown. */
export function mapPage<Row, Shown>(
  page: StorePage<Row>,
  show: (row: Row) => Shown,
): StorePage<Shown> {
  return { data: page.data.map(show), nextCursor: page.nextCursor };
}
