import { type AdminToken, adminRoles } from "@tollgate/core/store";
import type { SqlParameters } from "../statement.ts";
import { columnsOf } from "../tables.ts";
import { describeRow } from "./describe-row.ts";

/** A token as its row stores it. */
interface StoredToken extends Omit<AdminToken, "organizations" | "transcripts"> {
  /** Null for all organizations. */
  readonly organizations: readonly string[] | null;
  /** The data class up to which it may read transcripts. */
  readonly transcripts: string | null;
}

const rows = describeRow<StoredToken>({
  id: "text",
  label: "text",
  prefix: "text",
  role: adminRoles,
  organizations: "jsonOrNull",
  transcripts: "textOrNull",
  createdAt: "integer",
  expiresAt: "integer",
  revokedAt: "integerOrNull",
  lastUsedAt: "integerOrNull",
});

/** The columns of a token's row. */
export const adminTokenColumns = columnsOf("admin_tokens");

/** A token for the admin API as the parameters of its row; `sequence` gives the order of creation. */
export function adminTokenToRow(
  token: AdminToken,
  digest: Uint8Array,
  sequence: number,
): SqlParameters {
  const organizations = token.organizations === "all" ? null : token.organizations;
  const transcripts = token.transcripts?.upTo ?? null;
  return { ...rows.toRow({ ...token, organizations, transcripts }), digest, sequence };
}

/** The token in a row. */
export function adminTokenFromRow(row: unknown): AdminToken {
  const { organizations, transcripts: upTo, ...token } = rows.fromRow(row);
  const transcripts = upTo === null ? null : { upTo };
  return { ...token, organizations: organizations ?? "all", transcripts };
}
