import { type ApiKey, GatewayError, type KeyRepository } from "@tollgate/core/store";
import {
  administration,
  type Conditions,
  keyColumns,
  keyFromRow,
  keyToRow,
  leafToRow,
  lists,
  opening,
  readRow,
} from "@tollgate/store-sql";
import type { Database } from "../database/database.ts";
import type { Transaction } from "../database/transaction.ts";
import { readById } from "./read-by-id.ts";
import { readPage } from "./read-page.ts";

export function createKeyRepository(database: Database, conditions: Conditions): KeyRepository {
  return {
    insert: (entry) => database.write((transaction) => insert(transaction, entry)),
    findByDigest: (digest, at) =>
      database.read((connection) => {
        const row = connection.get(administration.keyByDigest, { digest, at });
        return row === undefined
          ? null
          : { key: keyFromRow(row), salt: readRow(row).bytes("salt") };
      }),
    get: (organizationId, id) =>
      database.read((connection) => readById(connection, keys, { organizationId, id }, keyFromRow)),
    list: (query, paging) =>
      readPage(database, lists.keys, conditions.ofKeys(query), paging, keyFromRow),
    update: (change) => database.write((transaction) => update(transaction, change)),
    rotate: (change) => database.write((transaction) => rotate(transaction, change)),
    touch: (uses) =>
      database.write((transaction) => {
        for (const { organizationId, keyId, at } of uses)
          transaction.run(administration.touchKey, {
            organization_id: organizationId,
            id: keyId,
            at,
          });
      }),
  };
}

const keys = { name: "api_keys", columns: keyColumns };

function insert(
  transaction: Transaction,
  { key, digest, salt, leaf }: Parameters<KeyRepository["insert"]>[0],
): void {
  if (digest) requireFree(transaction, digest, key);
  const row = keyToRow(key, transaction.next());
  if (transaction.run(administration.insertKey, row) === 0) return;
  transaction.run(administration.insertOrganization, { id: key.organizationId, salt });
  if (digest) insertSecret(transaction, digest, key);
  transaction.run(opening.insertLeaf, leafToRow(leaf, transaction.next()));
}

function update(
  transaction: Transaction,
  { organizationId, id, patch, leaf }: Parameters<KeyRepository["update"]>[0],
): ApiKey | null {
  const key = readById(transaction, keys, { organizationId, id }, keyFromRow);
  if (!key) return null;
  const changed = { ...key, ...patch };
  transaction.run(administration.updateKey, keyToRow(changed, 0));
  transaction.run(opening.insertLeaf, leafToRow(leaf, transaction.next()));
  return changed;
}

function rotate(
  transaction: Transaction,
  {
    organizationId,
    id,
    digest,
    prefix,
    oldSecretsEnd,
    leaf,
  }: Parameters<KeyRepository["rotate"]>[0],
): boolean {
  const key = readById(transaction, keys, { organizationId, id }, keyFromRow);
  if (!key) return false;
  if (requireFree(transaction, digest, key) === "given") return true;
  transaction.run(administration.endSecrets, {
    organization_id: organizationId,
    id,
    at: oldSecretsEnd,
  });
  insertSecret(transaction, digest, key);
  transaction.run(administration.updateKey, keyToRow({ ...key, prefix }, 0));
  transaction.run(opening.insertLeaf, leafToRow(leaf, transaction.next()));
  return true;
}

/** A secret belongs to one key; the same key may bring it again, so that a call can be repeated. */
function requireFree(transaction: Transaction, digest: Uint8Array, key: ApiKey): "free" | "given" {
  const row = transaction.get(administration.secretHolder, { digest });
  if (row === undefined) return "free";
  const holder = readRow(row);
  if (holder.text("organization_id") === key.organizationId && holder.text("key_id") === key.id)
    return "given";
  throw new GatewayError("invalid_argument", "The secret belongs to another key.");
}

function insertSecret(transaction: Transaction, digest: Uint8Array, key: ApiKey): void {
  transaction.run(administration.insertSecret, {
    digest,
    organization_id: key.organizationId,
    key_id: key.id,
    expires_at: null,
  });
}
