import {
  type ApiKey,
  type KeyOfSecret,
  type KeyWithSalt,
  leadingSystems,
} from "@tollgate/core/store";
import { describeRow } from "./describe-row.ts";
import { readRow } from "./row-reader.ts";

/** The rows of API keys. */
export const keyRows = describeRow<ApiKey>({
  id: "text",
  organizationId: "text",
  userId: "text",
  label: "text",
  prefix: "text",
  defaultDataClass: "text",
  minimumDataClass: "text",
  models: "jsonOrNull",
  aliases: "jsonOrNull",
  leadingSystem: [...leadingSystems, null],
  createdAt: "integer",
  expiresAt: "integerOrNull",
  revokedAt: "integerOrNull",
  lastUsedAt: "integerOrNull",
  version: "integer",
});

/** The API key in a row, with its organization's salt. */
export function foundKeyFromRow(row: unknown): KeyWithSalt {
  return { key: keyRows.fromRow(row), salt: readRow(row).bytes("salt") };
}

/** The same for a key that was found by a secret. */
export function foundSecretFromRow(row: unknown): KeyOfSecret {
  return { ...foundKeyFromRow(row), secretEndsAt: readRow(row).integerOrNull("secret_ends_at") };
}
