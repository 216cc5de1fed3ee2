import {
  type ApiKey,
  type KeyOfSecret,
  type KeyWithSalt,
  leadingSystems,
} from "@tollgate/core/store";
import type { SqlParameters } from "../statement.ts";
import { readRow } from "./row-reader.ts";

/** The columns of an API key's row. */
export const keyColumns = [
  "organization_id",
  "id",
  "user_id",
  "label",
  "prefix",
  "default_data_class",
  "minimum_data_class",
  "models",
  "aliases",
  "leading_system",
  "created_at",
  "expires_at",
  "revoked_at",
  "last_used_at",
  "version",
  "sequence",
] as const;

/** An API key as the parameters of its row; `sequence` gives the order of creation. */
export function keyToRow(key: ApiKey, sequence: number): SqlParameters {
  return {
    organization_id: key.organizationId,
    id: key.id,
    user_id: key.userId,
    label: key.label,
    prefix: key.prefix,
    default_data_class: key.defaultDataClass,
    minimum_data_class: key.minimumDataClass,
    models: key.models && JSON.stringify(key.models),
    aliases: key.aliases && JSON.stringify(key.aliases),
    leading_system: key.leadingSystem,
    created_at: key.createdAt,
    expires_at: key.expiresAt,
    revoked_at: key.revokedAt,
    last_used_at: key.lastUsedAt,
    version: key.version,
    sequence,
  };
}

/** The API key in a row. */
export function keyFromRow(row: unknown): ApiKey {
  const read = readRow(row);
  return {
    id: read.text("id"),
    organizationId: read.text("organization_id"),
    userId: read.text("user_id"),
    label: read.text("label"),
    prefix: read.text("prefix"),
    defaultDataClass: read.text("default_data_class"),
    minimumDataClass: read.text("minimum_data_class"),
    models: read.jsonOrNull("models"),
    aliases: read.jsonOrNull("aliases"),
    leadingSystem: read.wordOrNull("leading_system", leadingSystems),
    createdAt: read.integer("created_at"),
    expiresAt: read.integerOrNull("expires_at"),
    revokedAt: read.integerOrNull("revoked_at"),
    lastUsedAt: read.integerOrNull("last_used_at"),
    version: read.integer("version"),
  };
}

/** The API key in a row, with its organization's salt. */
export function foundKeyFromRow(row: unknown): KeyWithSalt {
  return { key: keyFromRow(row), salt: readRow(row).bytes("salt") };
}

/** The same for a key that was found by a secret. */
export function foundSecretFromRow(row: unknown): KeyOfSecret {
  return { ...foundKeyFromRow(row), secretEndsAt: readRow(row).integerOrNull("secret_ends_at") };
}
