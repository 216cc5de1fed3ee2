import { GatewayError, type KeyRepository } from "@tollgate/core/store";
import type { KeyRow, SecretRow, State } from "./state.ts";
import { mapPage } from "./table.ts";

export function createKeyRepository(state: State): KeyRepository {
  return {
    async insert({ key, digest, salt, leaf }) {
      const row: KeyRow = { id: key.id, organizationId: key.organizationId, key, secrets: [] };
      if (digest) refuseTakenDigest(state, digest, row);
      if (!state.keys.insert(row)) return;
      if (digest) addSecret(state, row, digest);
      if (!state.salts.has(key.organizationId))
        state.salts.set(key.organizationId, Uint8Array.from(salt));
      state.leaves.insert(leaf);
    },
    async findByDigest(digest, at) {
      const secret = state.secrets.get(nameOf(digest));
      if (!secret || (secret.expiresAt !== null && secret.expiresAt <= at)) return null;
      const { key } = secret.keyRow;
      return { key, salt: Uint8Array.from(state.salts.get(key.organizationId) ?? []) };
    },
    get: async (organizationId, id) => state.keys.get(organizationId, id)?.key ?? null,
    async list({ organizationId: tenant, userId }, paging) {
      const matches = ({ key }: KeyRow): boolean => userId === undefined || key.userId === userId;
      const page = state.keys.page({ direction: "newest-first", tenant, matches }, paging);
      return mapPage(page, ({ key }) => key);
    },
    async update({ organizationId, id, patch, leaf }) {
      const row = state.keys.get(organizationId, id);
      if (!row) return null;
      row.key = { ...row.key, ...patch };
      state.leaves.insert(leaf);
      return row.key;
    },
    async rotate({ organizationId, id, digest, prefix, oldSecretsEnd, leaf }) {
      const row = state.keys.get(organizationId, id);
      if (!row) return false;
      refuseTakenDigest(state, digest, row);
      if (state.secrets.has(nameOf(digest))) return true;
      for (const secret of row.secrets)
        secret.expiresAt = Math.min(secret.expiresAt ?? oldSecretsEnd, oldSecretsEnd);
      addSecret(state, row, digest);
      row.key = { ...row.key, prefix };
      state.leaves.insert(leaf);
      return true;
    },
    async touch(uses) {
      for (const { organizationId, keyId, at } of uses) {
        const row = state.keys.get(organizationId, keyId);
        if (row) row.key = { ...row.key, lastUsedAt: Math.max(row.key.lastUsedAt ?? at, at) };
      }
    },
  };
}

function nameOf(digest: Uint8Array): string {
  return Buffer.from(digest).toString("hex");
}

function addSecret(state: State, keyRow: KeyRow, digest: Uint8Array): void {
  const secret: SecretRow = { keyRow, expiresAt: null };
  keyRow.secrets.push(secret);
  state.secrets.set(nameOf(digest), secret);
}

/** A secret belongs to one key; the same key may bring it again, so that a call can be repeated. */
function refuseTakenDigest(state: State, digest: Uint8Array, row: KeyRow): void {
  const holder = state.secrets.get(nameOf(digest))?.keyRow;
  if (holder && (holder.id !== row.id || holder.organizationId !== row.organizationId))
    throw new GatewayError("invalid_argument", "The secret belongs to another key.");
}
