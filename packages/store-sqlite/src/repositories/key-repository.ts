import {
  type ApiKey,
  type FoundKey,
  GatewayError,
  type KeyChange,
  type KeyEntry,
  type KeyRepository,
  type KeyRotation,
  type KeySelection,
  keyIsLive,
} from "@tollgate/core/store";
import {
  administration,
  type Conditions,
  foundKeyFromRow,
  foundSecretFromRow,
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
    ensure: (entry) => ensure(database, entry),
    findByDigest: (digest, at) =>
      database.read((connection) => {
        const row = connection.get(administration.keyByDigest, { digest, at });
        return row === undefined ? null : foundSecretFromRow(row);
      }),
    get: (organizationId, id) =>
      database.read((connection) => readById(connection, keys, { organizationId, id }, keyFromRow)),
    list: (query, paging) =>
      readPage(database, lists.keys, conditions.ofKeys(query), paging, keyFromRow),
    change: (selection, decide) =>
      database.write((transaction) => change(transaction, selection, decide)),
    rotate: (rotation) => database.write((transaction) => rotate(transaction, rotation)),
    organizations: (after, limit) =>
      database.read((connection) =>
        connection
          .all(administration.organizations, { after, limit })
          .map((row) => readRow(row).text("id")),
      ),
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

/** Almost always it is there, and a read is all. */
async function ensure(database: Database, entry: KeyEntry): Promise<FoundKey> {
  const known = await database.read((connection) => withoutSecret(connection, entry.key));
  return (
    known ??
    database.write((transaction) => {
      insert(transaction, { ...entry, digest: null });
      const found = withoutSecret(transaction, entry.key);
      if (!found) throw new GatewayError("invalid_argument", "The id for a new key is taken.");
      return found;
    })
  );
}

function withoutSecret(connection: Pick<Transaction, "get">, key: ApiKey): FoundKey | null {
  const row = connection.get(administration.keyWithoutSecret, keyToRow(key, 0));
  return row === undefined ? null : foundKeyFromRow(row);
}

function change(
  transaction: Transaction,
  selection: KeySelection,
  decide: (key: ApiKey) => KeyChange | null,
): readonly ApiKey[] {
  return selected(transaction, selection).flatMap((key) => {
    const decided = decide(key);
    if (decided === null) return [];
    const changed = { ...key, ...decided.patch, version: key.version + 1 };
    transaction.run(administration.updateKey, keyToRow(changed, 0));
    transaction.run(opening.insertLeaf, leafToRow(decided.leaf, transaction.next()));
    return [changed];
  });
}

function selected(transaction: Transaction, selection: KeySelection): readonly ApiKey[] {
  if ("id" in selection) return [readById(transaction, keys, selection, keyFromRow) ?? []].flat();
  const { organizationId: organization_id, userId: user_id } = selection;
  return transaction.all(administration.keysOfUser, { organization_id, user_id }).map(keyFromRow);
}

function rotate(transaction: Transaction, rotation: KeyRotation): ApiKey | null {
  const { organizationId, id, at, digest, prefix, oldSecretsEnd, leaf } = rotation;
  const key = readById(transaction, keys, { organizationId, id }, keyFromRow);
  if (!key || key.prefix === "") return null;
  if (requireFree(transaction, digest, key) === "given") return key;
  if (!keyIsLive(key, at)) return null;
  transaction.run(administration.endSecrets, {
    organization_id: organizationId,
    id,
    at: oldSecretsEnd,
  });
  insertSecret(transaction, digest, key);
  const rotated = { ...key, prefix, version: key.version + 1 };
  transaction.run(administration.updateKey, keyToRow(rotated, 0));
  transaction.run(opening.insertLeaf, leafToRow(leaf, transaction.next()));
  return rotated;
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
