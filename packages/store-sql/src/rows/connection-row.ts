import type { SealedConnection } from "@tollgate/core/store";
import type { SqlParameters } from "../statement.ts";
import { readRow } from "./row-reader.ts";

/** The columns of a connection's row. */
export const connectionColumns = [
  "organization_id",
  "gateway",
  "id",
  "created_at",
  "updated_at",
  "key_id",
  "wrapped_key",
  "credential",
] as const;

/** A connection as the parameters of its row. */
export function connectionToRow(connection: SealedConnection): SqlParameters {
  return {
    organization_id: connection.organizationId,
    gateway: connection.gateway,
    id: connection.id,
    created_at: connection.createdAt,
    updated_at: connection.updatedAt,
    key_id: connection.keyId,
    wrapped_key: connection.wrappedKey,
    credential: connection.credential,
  };
}

/** The connection in a row. */
export function connectionFromRow(row: unknown): SealedConnection {
  const read = readRow(row);
  return {
    id: read.text("id"),
    organizationId: read.text("organization_id"),
    gateway: read.text("gateway"),
    createdAt: read.integer("created_at"),
    updatedAt: read.integer("updated_at"),
    keyId: read.text("key_id"),
    wrappedKey: read.bytes("wrapped_key"),
    credential: read.bytes("credential"),
  };
}
