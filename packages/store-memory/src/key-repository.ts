import {
  type ApiKey,
  GatewayError,
  type KeyEntry,
  type KeyRepository,
  type KeySelection,
  type KeyWithSalt,
  keyIsLive,
} from "@tollgate/core/store";
import type { KeyRow, SecretRow, State } from "./state.ts";
import { mapPage } from "./table.ts";

export function createKeyRepository(state: State): KeyRepository {
  return {
    async insert({ digest, ...entry }) {
      const row = rowOf(entry.key);
      if (digest) requireFreeDigest(state, digest, row);
      if (insert(state, row, entry) && digest) addSecret(state, row, digest);
    },
    async ensure(entry) {
      const name = secretlessKeyName(entry.key);
      const known = state.secretlessKeys.get(name);
      if (known) return withSalt(state, known);
      const row = rowOf(entry.key);
      if (!insert(state, row, entry))
        throw new GatewayError("invalid_argument", "The id for a new key is taken.");
      return withSalt(state, row);
    },
    async findByDigest(digest, at) {
      const secret = state.secrets.get(hexOf(digest));
      if (!secret || (secret.expiresAt !== null && secret.expiresAt <= at)) return null;
      return { ...withSalt(state, secret.keyRow), secretEndsAt: secret.expiresAt };
    },
    get: async (organizationId, id) => state.keys.get(organizationId, id)?.key ?? null,
    async list({ organizationId: tenant, userId, label, live }, paging) {
      const matches = ({ key }: KeyRow): boolean =>
        (userId === undefined || key.userId === userId) &&
        (label === undefined || key.label === label) &&
        (live === undefined || keyIsLive(key, live.at) === live.is);
      const page = state.keys.page({ direction: "newest-first", tenant, matches }, paging);
      return mapPage(page, ({ key }) => key);
    },
    async change(selection, decide) {
      const decided = selected(state, selection).map((row) => ({ row, change: decide(row.key) }));
      return decided.flatMap(({ row, change }) => {
        if (change === null) return [];
        row.key = { ...row.key, ...change.patch, version: row.key.version + 1 };
        state.leaves.insert(change.leaf);
        return [row.key];
      });
    },
    async organizations(after, limit) {
      const behind = [...state.salts.keys()].filter((id) => compareBytes(id, after) > 0);
      return behind.sort(compareBytes).slice(0, limit);
    },
    async rotate({ organizationId, id, at, digest, prefix, oldSecretsEnd, leaf }) {
      const row = state.keys.get(organizationId, id);
      if (!row || row.key.prefix === "") return null;
      requireFreeDigest(state, digest, row);
      if (state.secrets.has(hexOf(digest))) return row.key;
      if (!keyIsLive(row.key, at)) return null;
      for (const secret of row.secrets)
        secret.expiresAt = Math.min(secret.expiresAt ?? oldSecretsEnd, oldSecretsEnd);
      addSecret(state, row, digest);
      row.key = { ...row.key, prefix, version: row.key.version + 1 };
      state.leaves.insert(leaf);
      return row.key;
    },
    async touch(uses) {
      for (const { organizationId, keyId, at } of uses) {
        const row = state.keys.get(organizationId, keyId);
        if (row) row.key = { ...row.key, lastUsedAt: Math.max(row.key.lastUsedAt ?? at, at) };
      }
    },
  };
}

function rowOf(key: ApiKey): KeyRow {
  return { id: key.id, organizationId: key.organizationId, key, secrets: [], recent: new Map() };
}

/** False, and nothing written, when the organization has such a key already. */
function insert(state: State, row: KeyRow, { key, salt, leaf }: KeyEntry): boolean {
  const name = key.prefix === "" ? secretlessKeyName(key) : null;
  if (name !== null && state.secretlessKeys.has(name)) return false;
  if (!state.keys.insert(row)) return false;
  if (name !== null) state.secretlessKeys.set(name, row);
  if (!state.salts.has(key.organizationId))
    state.salts.set(key.organizationId, Uint8Array.from(salt));
  state.leaves.insert(leaf);
  return true;
}

function secretlessKeyName({ organizationId, userId, label }: ApiKey): string {
  return JSON.stringify([organizationId, userId, label]);
}

function withSalt(state: State, { key }: KeyRow): KeyWithSalt {
  return { key, salt: Uint8Array.from(state.salts.get(key.organizationId) ?? []) };
}

function selected(state: State, selection: KeySelection): readonly KeyRow[] {
  const { organizationId } = selection;
  if ("id" in selection) return [state.keys.get(organizationId, selection.id) ?? []].flat();
  const { userId } = selection;
  return state.keys.newestFirst(organizationId).filter(({ key }) => key.userId === userId);
}

function compareBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

function hexOf(digest: Uint8Array): string {
  return Buffer.from(digest).toString("hex");
}

function addSecret(state: State, keyRow: KeyRow, digest: Uint8Array): void {
  const secret: SecretRow = { keyRow, expiresAt: null };
  keyRow.secrets.push(secret);
  state.secrets.set(hexOf(digest), secret);
}

/** A secret belongs to one key; the same key may bring it again, so that a call can be repeated. */
function requireFreeDigest(state: State, digest: Uint8Array, row: KeyRow): void {
  const holder = state.secrets.get(hexOf(digest))?.keyRow;
  if (holder && (holder.id !== row.id || holder.organizationId !== row.organizationId))
    throw new GatewayError("invalid_argument", "The secret belongs to another key.");
}
