import {
  type AdminToken,
  type AdminTokenRepository,
  type ApiKey,
  adminRoles,
  GatewayError,
  type KeyEntry,
  type KeyName,
  type KeyRepository,
  type KeyRotation,
  type KeyUpdate,
  type KeyWithSalt,
  keyIsLive,
} from "@tollgate/core/store";
import type { SqlDialect } from "../dialect.ts";
import { lists } from "../lists.ts";
import { describeRow } from "../rows/describe-row.ts";
import { foundKeyFromRow, foundSecretFromRow, keyRows } from "../rows/key-row.ts";
import { readRow } from "../rows/row-reader.ts";
import {
  all,
  anyway,
  find,
  get,
  nextNumber,
  once,
  run,
  type Script,
  type ScriptDatabase,
} from "../script.ts";
import { insertInto, type SqlParameters } from "../statement.ts";
import { administrationStatements } from "../statements/administration.ts";
import { columnsOf } from "../tables.ts";
import { type Access, insertLeaf, readById, readWhere } from "./reading.ts";

export function createKeyRepository({
  database,
  dialect,
  conditions,
  readPage,
}: Access): KeyRepository {
  const lockedKey = lockedKeyIn(dialect);
  return {
    insert: (entry) => database.write(() => insert(entry), anyway),
    ensure: (entry) => ensure(database, entry),
    findByDigest: (digest, at) =>
      database.read(() =>
        find(administrationStatements.keyByDigest, { digest, at }, foundSecretFromRow),
      ),
    get: (organizationId, id) =>
      readWhere(database, keys, { organizationId, id }, (organizationId) =>
        readById(keys, { organizationId, id }, keyRows.fromRow),
      ),
    list: (query, paging) =>
      readPage(lists.keys, conditions.ofKeys(query), paging, keyRows.fromRow),
    change: (name, decide) => database.write(() => change(lockedKey(name), decide), once),
    rotate: (rotation) => database.write(() => rotate(lockedKey(rotation), rotation), anyway),
    organizations: (after, limit) => database.read(() => organizations(after, limit)),
    touch: (uses) => database.write(() => touch(uses), anyway),
  };
}

const keys = { name: "api_keys", columns: keyRows.columns };

function* organizations(after: string, limit: number): Script<readonly string[]> {
  const rows = yield* all(administrationStatements.organizations, { after, limit });
  return rows.map((row) => readRow(row).text("id"));
}

function* insert({
  key,
  digest,
  salt,
  leaf,
}: Parameters<KeyRepository["insert"]>[0]): Script<void> {
  if (digest) yield* requireFree(digest, key);
  const row = { ...keyRows.toRow(key), sequence: yield* nextNumber() };
  if ((yield* run(administrationStatements.insertKey, row)) === 0) return;
  yield* run(administrationStatements.insertOrganization, { id: key.organizationId, salt });
  if (digest) yield* insertSecret(digest, key);
  yield* insertLeaf(leaf);
}

/** The row is almost always there, so one read is enough. */
async function ensure(database: ScriptDatabase, entry: KeyEntry): Promise<KeyWithSalt> {
  const known = await database.read(() => withoutSecret(entry.key));
  return known ?? database.write(() => insertWithoutSecret(entry), anyway);
}

function* insertWithoutSecret(entry: KeyEntry): Script<KeyWithSalt> {
  // Waits for another process that is writing the same row, and then finds that row.
  yield* insert({ ...entry, digest: null });
  const found = yield* withoutSecret(entry.key);
  if (!found) throw new GatewayError("invalid_argument", "The id for a new key is taken.");
  return found;
}

function withoutSecret(key: ApiKey): Script<KeyWithSalt | null> {
  return find(administrationStatements.keyWithoutSecret, keyRows.toRow(key), foundKeyFromRow);
}

/** A key that cannot change until the transaction ends, because a change writes the whole row back. */
function lockedKeyIn({ locked }: SqlDialect): (name: KeyName) => Script<ApiKey | null> {
  const byId = locked(administrationStatements.keyById);
  return ({ organizationId: organization_id, id }) =>
    find(byId, { organization_id, id }, keyRows.fromRow);
}

function* change(
  locked: Script<ApiKey | null>,
  decide: (key: ApiKey) => KeyUpdate | null,
): Script<ApiKey | null> {
  const key = yield* locked;
  const decided = key && decide(key);
  if (!key || !decided) return null;
  const next = { ...key, ...decided.patch, version: key.version + 1 };
  yield* run(administrationStatements.updateKey, keyRows.toRow(next));
  yield* insertLeaf(decided.leaf);
  return next;
}

function* rotate(
  locked: Script<ApiKey | null>,
  { organizationId, id, at, digest, prefix, oldSecretsEnd, check, leaf }: KeyRotation,
): Script<ApiKey | null> {
  const key = yield* locked;
  if (!key || key.prefix === "") return null;
  if ((yield* requireFree(digest, key)) === "given") return key;
  if (!keyIsLive(key, at)) return null;
  check?.(key);
  const ending = { organization_id: organizationId, id, at: oldSecretsEnd };
  yield* run(administrationStatements.endSecrets, ending);
  yield* insertSecret(digest, key);
  const rotated = { ...key, prefix, version: key.version + 1 };
  yield* run(administrationStatements.updateKey, keyRows.toRow(rotated));
  yield* insertLeaf(leaf);
  return rotated;
}

/** A secret belongs to one key. The same key may send it again, so a call can be repeated. */
function* requireFree(digest: Uint8Array, key: ApiKey): Script<"free" | "given"> {
  const row = yield* get(administrationStatements.secretHolder, { digest });
  if (row === undefined) return "free";
  const holder = readRow(row);
  if (holder.text("organization_id") === key.organizationId && holder.text("key_id") === key.id)
    return "given";
  throw new GatewayError("invalid_argument", "The secret belongs to another key.");
}

function* insertSecret(digest: Uint8Array, { organizationId, id }: ApiKey): Script<void> {
  const secret = { digest, organization_id: organizationId, key_id: id, expires_at: null };
  yield* run(administrationStatements.insertSecret, secret);
}

/** In a fixed order, so processes that note the same keys do not deadlock. */
function* touch(uses: Parameters<KeyRepository["touch"]>[0]): Script<void> {
  const inOrder = uses.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
  for (const { organizationId, keyId, at } of inOrder)
    yield* run(administrationStatements.touchKey, {
      organization_id: organizationId,
      id: keyId,
      at,
    });
}

function nameOf({
  organizationId,
  keyId,
}: {
  readonly organizationId: string;
  readonly keyId: string;
}): string {
  return JSON.stringify([organizationId, keyId]);
}

type TokenInsertion = Parameters<AdminTokenRepository["insert"]>[0];
type TokenRevocation = Parameters<AdminTokenRepository["revoke"]>[0];

const selectToken = `SELECT ${columnsOf("admin_tokens").join(", ")} FROM admin_tokens`;
const tokenStatements = {
  insert: `${insertInto("admin_tokens", columnsOf("admin_tokens"))} ON CONFLICT DO NOTHING`,
  byDigest: `${selectToken} WHERE digest = :digest`,
  byId: `${selectToken} WHERE id = :id`,
  revoke: "UPDATE admin_tokens SET revoked_at = :at WHERE id = :id AND revoked_at IS NULL",
  touch: `UPDATE admin_tokens SET last_used_at = :at
    WHERE id = :id AND (last_used_at IS NULL OR last_used_at < :at)`,
} as const;

export function createAdminTokenRepository({ database, readPage }: Access): AdminTokenRepository {
  return {
    insert: (entry) => database.write(() => insertToken(entry), anyway),
    findByDigest: (digest) =>
      database.read(() => find(tokenStatements.byDigest, { digest }, adminTokenFromRow)),
    get: (id) => database.read(() => find(tokenStatements.byId, { id }, adminTokenFromRow)),
    list: (paging) => readPage(lists.adminTokens, [], paging, adminTokenFromRow),
    // It returns whether it ended the token. A second run would return the opposite.
    revoke: (revocation) => database.write(() => revokeToken(revocation), once),
    async touch(use) {
      await database.write(() => run(tokenStatements.touch, use), anyway);
    },
  };
}

function* insertToken({ token, digest, leaf }: TokenInsertion): Script<void> {
  const row = adminTokenToRow(token, digest, yield* nextNumber());
  if ((yield* run(tokenStatements.insert, row)) > 0) yield* insertLeaf(leaf);
}

function* revokeToken({ id, at, leaf }: TokenRevocation): Script<boolean> {
  if ((yield* run(tokenStatements.revoke, { id, at })) === 0) return false;
  yield* insertLeaf(leaf);
  return true;
}

/** A token as its row stores it. */
interface StoredToken extends Omit<AdminToken, "organizations" | "transcripts"> {
  /** Null for all organizations. */
  readonly organizations: readonly string[] | null;
  /** The data class up to which it may read transcripts. */
  readonly transcripts: string | null;
}

const tokenRows = describeRow<StoredToken>({
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

/** A token for the admin API as the parameters of its row; `sequence` gives the order of creation. */
function adminTokenToRow(token: AdminToken, digest: Uint8Array, sequence: number): SqlParameters {
  const organizations = token.organizations === "all" ? null : token.organizations;
  const transcripts = token.transcripts?.upTo ?? null;
  return { ...tokenRows.toRow({ ...token, organizations, transcripts }), digest, sequence };
}

/** The token in a row. */
function adminTokenFromRow(row: unknown): AdminToken {
  const { organizations, transcripts: upTo, ...token } = tokenRows.fromRow(row);
  const transcripts = upTo === null ? null : { upTo };
  return { ...token, organizations: organizations ?? "all", transcripts };
}
