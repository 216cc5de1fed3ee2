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
import { locking } from "../statements/locking.ts";
import { readById } from "./read-by-id.ts";
import { readPage } from "./read-page.ts";

export function createKeyRepository(database: Database, conditions: Conditions): KeyRepository {
  return {
    insert: (entry) => database.write((transaction) => insert(transaction, entry), anyway),
    ensure: (entry) => ensure(database, entry),
    findByDigest: (digest, at) =>
      database.read(async (connection) => {
        const row = await connection.get(administration.keyByDigest, { digest, at });
        return row === undefined ? null : foundSecretFromRow(row);
      }),
    get: (organizationId, id) =>
      database.read((connection) => readById(connection, keys, { organizationId, id }, keyFromRow)),
    list: (query, paging) =>
      readPage(database, lists.keys, conditions.ofKeys(query), paging, keyFromRow),
    change: (selection, decide) =>
      database.write((transaction) => change(transaction, selection, decide), once),
    rotate: (rotation) => database.write((transaction) => rotate(transaction, rotation), anyway),
    organizations: (after, limit) =>
      database.read(async (connection) =>
        (await connection.all(administration.organizations, { after, limit })).map((row) =>
          readRow(row).text("id"),
        ),
      ),
    touch: (uses) => database.write((transaction) => touch(transaction, uses), anyway),
  };
}

const anyway = { evenIfDone: true };
/** What is decided goes by how the keys are, and on its own change it would decide otherwise. */
const once = { evenIfDone: false };
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

/** Almost always it is there, and a read is all. */
async function ensure(database: Database, entry: KeyEntry): Promise<FoundKey> {
  const known = await database.read((connection) => withoutSecret(connection, entry.key));
  return (
    known ??
    database.write(async (transaction) => {
      // Waits for another process that is just writing the same, and then finds what it wrote.
      await insert(transaction, { ...entry, digest: null });
      const found = await withoutSecret(transaction, entry.key);
      if (!found) throw new GatewayError("invalid_argument", "The id for a new key is taken.");
      return found;
    }, anyway)
  );
}

async function withoutSecret(
  connection: Pick<Transaction, "get">,
  key: ApiKey,
): Promise<FoundKey | null> {
  const row = await connection.get(administration.keyWithoutSecret, keyToRow(key, 0));
  return row === undefined ? null : foundKeyFromRow(row);
}

async function change(
  transaction: Transaction,
  selection: KeySelection,
  decide: (key: ApiKey) => KeyChange | null,
): Promise<readonly ApiKey[]> {
  const changed: ApiKey[] = [];
  for (const key of await lock(transaction, selection)) {
    const decided = decide(key);
    if (decided === null) continue;
    const next = { ...key, ...decided.patch, version: key.version + 1 };
    await transaction.run(administration.updateKey, keyToRow(next, 0));
    await transaction.run(opening.insertLeaf, leafToRow(decided.leaf, await transaction.next()));
    changed.push(next);
  }
  return changed;
}

/** Keys as they stay until the transaction ends: what is changed about them is written back whole. */
async function lock(transaction: Transaction, selection: KeySelection): Promise<readonly ApiKey[]> {
  const { organizationId: organization_id } = selection;
  const rows =
    "id" in selection
      ? await transaction.all(locking.key, { organization_id, id: selection.id })
      : await transaction.all(locking.keysOfUser, { organization_id, user_id: selection.userId });
  return rows.map(keyFromRow);
}

async function rotate(transaction: Transaction, rotation: KeyRotation): Promise<ApiKey | null> {
  const { organizationId, id, at, digest, prefix, oldSecretsEnd, leaf } = rotation;
  const [key] = await lock(transaction, { organizationId, id });
  if (!key || key.prefix === "") return null;
  if ((await requireFree(transaction, digest, key)) === "given") return key;
  if (!keyIsLive(key, at)) return null;
  await transaction.run(administration.endSecrets, {
    organization_id: organizationId,
    id,
    at: oldSecretsEnd,
  });
  await insertSecret(transaction, digest, key);
  const rotated = { ...key, prefix, version: key.version + 1 };
  await transaction.run(administration.updateKey, keyToRow(rotated, 0));
  await transaction.run(opening.insertLeaf, leafToRow(leaf, await transaction.next()));
  return rotated;
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
