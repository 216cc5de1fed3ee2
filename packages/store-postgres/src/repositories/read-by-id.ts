import type { Tenant } from "@tollgate/core/store";
import { selectById } from "@tollgate/store-sql";
import type { Connection } from "../database/connection.ts";

/** Reads one row by its id, in an organization or in whichever has it; null when there is none. */
export async function readById<Record>(
  connection: Pick<Connection, "get">,
  table: { readonly name: string; readonly columns: readonly string[] },
  place: { readonly organizationId: Tenant; readonly id: string },
  fromRow: (row: unknown) => Record,
): Promise<Record | null> {
  const { organizationId, id } = place;
  const text = selectById(table.name, table.columns, organizationId === null);
  const row = await connection.get(text, { organization_id: organizationId, id });
  return row === undefined ? null : fromRow(row);
}
