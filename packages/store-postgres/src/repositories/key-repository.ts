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
import { locking } from "../statements/locking.ts";
import { readById } from "./read-by-id.ts";
import { readPage } from "./read-page.ts";

export function createKeyRepository(database: Database, conditions: Conditions): KeyRepository {
  return {
    insert: (entry) => database.write((transaction) => insert(transaction, entry), anyway),
    findByDigest: (digest, at) =>
      database.read(async (connection) => {
        const row = await connection.get(administration.keyByDigest, { digest, at });
        return row === undefined
          ? null
          : { key: keyFromRow(row), salt: readRow(row).bytes("salt") };
      }),
    get: (organizationId, id) =>
      database.read((connection) => readById(connection, keys, { organizationId, id }, keyFromRow)),
    list: (query, paging) =>
      readPage(database, lists.keys, conditions.ofKeys(query), paging, keyFromRow),
    update: (change) => database.write((transaction) => update(transaction, change), anyway),
    rotate: (change) => database.write((transaction) => rotate(transaction, change), anyway),
    touch: (uses) => database.write((transaction) => touch(transaction, uses), anyway),
  };
}

const anyway = { evenIfDone: true };
const keys = { name: "api_keys", columns: keyColumns };

async function insert(
  transaction: Transaction,
  { key, digest, salt, leaf }: Parameters<KeyRepository["insert"]>[0],
): Promise<void> {
  if (digest) await requireFree(transaction, digest, key);
  const row = keyToRow(key, await transaction.next());
  if ((await transaction.run(administration.insertKey, row)) === 0) return;
  await transaction.run(administration.insertOrganization, { id: key.organizationId, salt });
  if (digest) await insertSecret(transaction, digest, key);
  await transaction.run(opening.insertLeaf, leafToRow(leaf, await transaction.next()));
}

async function update(
  transaction: Transaction,
  { organizationId, id, patch, leaf }: Parameters<KeyRepository["update"]>[0],
): Promise<ApiKey | null> {
  const key = await lockKey(transaction, organizationId, id);
  if (!key) return null;
  const changed = { ...key, ...patch };
  await transaction.run(administration.updateKey, keyToRow(changed, 0));
  await transaction.run(opening.insertLeaf, leafToRow(leaf, await transaction.next()));
  return changed;
}

async function rotate(
  transaction: Transaction,
  {
    organizationId,
    id,
    digest,
    prefix,
    oldSecretsEnd,
    leaf,
  }: Parameters<KeyRepository["rotate"]>[0],
): Promise<boolean> {
  const key = await lockKey(transaction, organizationId, id);
  if (!key) return false;
  if ((await requireFree(transaction, digest, key)) === "given") return true;
  await transaction.run(administration.endSecrets, {
    organization_id: organizationId,
    id,
    at: oldSecretsEnd,
  });
  await insertSecret(transaction, digest, key);
  await transaction.run(administration.updateKey, keyToRow({ ...key, prefix }, 0));
  await transaction.run(opening.insertLeaf, leafToRow(leaf, await transaction.next()));
  return true;
}

/** A key as it stays until the transaction ends: what is changed about it is written back whole. */
async function lockKey(
  transaction: Transaction,
  organizationId: string,
  id: string,
): Promise<ApiKey | null> {
  const row = await transaction.get(locking.key, { organization_id: organizationId, id });
  return row === undefined ? null : keyFromRow(row);
}

/** A secret belongs to one key; the same key may bring it again, so that a call can be repeated. */
async function requireFree(
  transaction: Transaction,
  digest: Uint8Array,
  key: ApiKey,
): Promise<"free" | "given"> {
  const row = await transaction.get(administration.secretHolder, { digest });
  if (row === undefined) return "free";
  const holder = readRow(row);
  if (holder.text("organization_id") === key.organizationId && holder.text("key_id") === key.id)
    return "given";
  throw new GatewayError("invalid_argument", "The secret belongs to another key.");
}

async function insertSecret(
  transaction: Transaction,
  digest: Uint8Array,
  key: ApiKey,
): Promise<void> {
  await transaction.run(administration.insertSecret, {
    digest,
    organization_id: key.organizationId,
    key_id: key.id,
    expires_at: null,
  });
}
/** In one order, so that processes that note the same keys do not wait for each other in a circle. */
async function touch(
  transaction: Transaction,
  uses: Parameters<KeyRepository["touch"]>[0],
): Promise<void> {
  const inOrder = uses.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
  for (const { organizationId, keyId, at } of inOrder)
    await transaction.run(administration.touchKey, {
      organization_id: organizationId,
      id: keyId,
      at,
    });
}

function nameOf({ organizationId, keyId }: { organizationId: string; keyId: string }): string {
  return JSON.stringify([organizationId, keyId]);
}
