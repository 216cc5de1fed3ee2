import {
  type ConnectionQuery,
  decodeCursor,
  encodeCursor,
  type GatewayConnection,
  type SealedConnection,
  type StorePage,
  type StorePaging,
} from "@tollgate/core/store";
import { connectionRows } from "../rows/connection-row.ts";
import type { PageStatement } from "../select-page.ts";
import { insertInto } from "../statement.ts";

const columns = connectionRows.columns.join(", ");
const place = "organization_id = :organization_id AND gateway = :gateway";
const replaced = connectionRows.columns
  .filter((column) => column !== "organization_id" && column !== "gateway")
  .map((column) => `${column} = excluded.${column}`);

/** Statements on the sealed credentials of customer-owned gateways. */
export const connectionStatements = {
  /** Changes no row if exactly this credential is already stored. */
  set: `${insertInto("connections AS held", connectionRows.columns)}
    ON CONFLICT (organization_id, gateway) DO UPDATE SET ${replaced.join(", ")}
    WHERE held.credential <> excluded.credential`,
  find: `SELECT ${columns} FROM connections WHERE ${place}`,
  remove: `DELETE FROM connections WHERE ${place} AND id = :id`,
  rewrap: `UPDATE connections SET key_id = :key_id, wrapped_key = :wrapped_key
    WHERE ${place} AND wrapped_key = :replaced_key`,
  isWrapped: `SELECT 1 AS found FROM connections WHERE ${place} AND wrapped_key = :wrapped_key`,
} as const;

const listName = "connections";

/** The statement that reads a page of connections, in the order of their key. */
export function selectConnections(query: ConnectionQuery, paging: StorePaging): PageStatement {
  const { organizationId, notWrappedBy } = query;
  const place = paging.cursor === null ? null : placeOf(paging.cursor);
  const conditions = [
    organizationId === null ? [] : "organization_id = :organization_id",
    notWrappedBy === undefined ? [] : "key_id <> :key_id",
    place === null ? [] : "(organization_id, gateway) > (:page_organization, :page_gateway)",
  ].flat();
  const where = conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`;
  return {
    text: `SELECT ${columns} FROM connections ${where}
      ORDER BY organization_id, gateway LIMIT :page_limit`,
    parameters: {
      page_limit: paging.limit + 1,
      organization_id: organizationId,
      key_id: notWrappedBy ?? null,
      page_organization: place?.organizationId ?? null,
      page_gateway: place?.gateway ?? null,
    },
  };
}

/** Builds the page from the statement's rows. */
export function connectionPage(
  rows: readonly unknown[],
  { limit }: StorePaging,
): StorePage<SealedConnection> {
  const data = rows.slice(0, limit).map(connectionRows.fromRow);
  const last = data.at(-1);
  return { data, nextCursor: last && rows.length > limit ? cursorAt(last) : null };
}

/** Gateway names contain no slash. */
function cursorAt({ organizationId, gateway }: GatewayConnection): string {
  return encodeCursor(listName, { order: 0, tie: `${organizationId}/${gateway}` });
}

function placeOf(cursor: string): Pick<GatewayConnection, "organizationId" | "gateway"> {
  const { tie } = decodeCursor(listName, cursor);
  const end = tie.lastIndexOf("/");
  return { organizationId: tie.slice(0, Math.max(end, 0)), gateway: tie.slice(end + 1) };
}
