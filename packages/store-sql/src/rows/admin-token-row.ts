import { type AdminToken, adminRoles } from "@tollgate/core/store";
import type { SqlParameters } from "../statement.ts";
import { readRow } from "./row-reader.ts";

/** The columns of a token's row. */
export const adminTokenColumns = [
  "id",
  "digest",
  "label",
  "prefix",
  "role",
  "organizations",
  "transcripts",
  "created_at",
  "expires_at",
  "revoked_at",
  "last_used_at",
  "sequence",
] as const;

/** A token for the admin API as the parameters of its row; `sequence` gives the order of creation. */
export function adminTokenToRow(
  token: AdminToken,
  digest: Uint8Array,
  sequence: number,
): SqlParameters {
  const { organizations } = token;
  return {
    id: token.id,
    digest,
    label: token.label,
    prefix: token.prefix,
    role: token.role,
    organizations: organizations === "all" ? null : JSON.stringify(organizations),
    transcripts: token.transcripts?.upTo ?? null,
    created_at: token.createdAt,
    expires_at: token.expiresAt,
    revoked_at: token.revokedAt,
    last_used_at: token.lastUsedAt,
    sequence,
  };
}

/** The token in a row. */
export function adminTokenFromRow(row: unknown): AdminToken {
  const read = readRow(row);
  const upTo = read.textOrNull("transcripts");
  return {
    id: read.text("id"),
    label: read.text("label"),
    prefix: read.text("prefix"),
    role: read.word("role", adminRoles),
    organizations: read.jsonOrNull<readonly string[]>("organizations") ?? "all",
    transcripts: upTo === null ? null : { upTo },
    createdAt: read.integer("created_at"),
    expiresAt: read.integer("expires_at"),
    revokedAt: read.integerOrNull("revoked_at"),
    lastUsedAt: read.integerOrNull("last_used_at"),
  };
}
