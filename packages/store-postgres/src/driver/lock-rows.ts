import type { RowName } from "@tollgate/store-engine";
import type { Connection } from "../database/connection.ts";
import { arrayOf } from "../database/postgres-dialect.ts";

/** Locks rows in the common order until the transaction ends. */
export async function lockRows(
  connection: Pick<Connection, "get">,
  table: "steps" | "sessions" | "responses",
  rows: readonly RowName[],
): Promise<void> {
  const sorted = rows.toSorted(byName);
  await connection.get(
    `SELECT count(*) FROM unnest(CAST(:organizations AS TEXT[]), CAST(:ids AS TEXT[]))
        AS g (organization_id, id)
      WHERE (SELECT 1 FROM ${table} r
        WHERE r.organization_id = g.organization_id AND r.id = g.id FOR UPDATE) IS NOT NULL`,
    {
      organizations: arrayOf(sorted.map(({ organizationId }) => organizationId)),
      ids: arrayOf(sorted.map(({ id }) => id)),
    },
  );
}

/** Whether two names are of one row of a table. An id is unique only within its organization. */
export function isSameRow(a: RowName, b: RowName): boolean {
  return a.id === b.id && a.organizationId === b.organizationId;
}

/** The common order of locks on rows of a table. */
export function byName(a: RowName, b: RowName): number {
  if (a.organizationId !== b.organizationId) return a.organizationId < b.organizationId ? -1 : 1;
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
}
