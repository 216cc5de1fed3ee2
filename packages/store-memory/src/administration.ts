import {
  type AdminTokenRepository,
  type ApiKey,
  type Budget,
  type BudgetRaise,
  type BudgetRepository,
  type CheckBefore,
  type ConnectionQuery,
  type ConnectionRepository,
  type EvidenceLeaf,
  type GatewayConnection,
  GatewayError,
  type KeyEntry,
  type KeyRepository,
  type KeyWithSalt,
  keyIsLive,
  type RateLimitRepository,
  type SealedConnection,
  type StorePage,
  type StorePaging,
} from "@tollgate/core/store";
import {
  compareBytes,
  type Ledger,
  type LedgerChunk,
  type LedgerCorrection,
  type LedgerReads,
  type LedgerStep,
  reconcile,
} from "@tollgate/store-engine";
import { mapPage, type Place, sortedPage } from "./page.ts";
import {
  type AdminTokenRow,
  insertLeaf,
  type KeyRow,
  organizationsAfter,
  type SecretRow,
  type State,
  type StepRow,
} from "./state.ts";

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
      const { cursorSecret: secret } = state;
      const page = state.keys.page({ direction: "newest-first", tenant, matches, secret }, paging);
      return mapPage(page, ({ key }) => key);
    },
    async change({ organizationId, id }, decide) {
      const row = state.keys.get(organizationId, id);
      const change = row && decide(row.key);
      if (!row || !change) return null;
      row.key = { ...row.key, ...change.patch, version: row.key.version + 1 };
      insertLeaf(state, change.leaf);
      return row.key;
    },
    organizations: async (after, limit) => organizationsAfter(state, after, limit),
    async rotate({ organizationId, id, at, digest, prefix, oldSecretsEnd, check, leaf }) {
      const row = state.keys.get(organizationId, id);
      if (!row || row.key.prefix === "") return null;
      requireFreeDigest(state, digest, row);
      if (state.secrets.has(hexOf(digest))) return row.key;
      if (!keyIsLive(row.key, at)) return null;
      check?.(row.key);
      for (const secret of row.secrets)
        secret.expiresAt = Math.min(secret.expiresAt ?? oldSecretsEnd, oldSecretsEnd);
      addSecret(state, row, digest);
      row.key = { ...row.key, prefix, version: row.key.version + 1 };
      insertLeaf(state, leaf);
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

/** Returns false and writes nothing if the organization already has such a key. */
function insert(state: State, row: KeyRow, { key, salt, leaf }: KeyEntry): boolean {
  const name = key.prefix === "" ? secretlessKeyName(key) : null;
  if (name !== null && state.secretlessKeys.has(name)) return false;
  if (!state.keys.insert(row)) return false;
  if (name !== null) state.secretlessKeys.set(name, row);
  if (!state.salts.has(key.organizationId))
    state.salts.set(key.organizationId, Uint8Array.from(salt));
  insertLeaf(state, leaf);
  return true;
}

function secretlessKeyName({ organizationId, userId, label }: ApiKey): string {
  return JSON.stringify([organizationId, userId, label]);
}

function withSalt(state: State, { key }: KeyRow): KeyWithSalt {
  return { key, salt: Uint8Array.from(state.salts.get(key.organizationId) ?? []) };
}

function hexOf(digest: Uint8Array): string {
  return Buffer.from(digest).toString("hex");
}

function addSecret(state: State, keyRow: KeyRow, digest: Uint8Array): void {
  const secret: SecretRow = { keyRow, expiresAt: null };
  keyRow.secrets.push(secret);
  state.secrets.set(hexOf(digest), secret);
}

/** A secret belongs to one key. The same key may pass it again, because a caller may repeat a call. */
function requireFreeDigest(state: State, digest: Uint8Array, row: KeyRow): void {
  const holder = state.secrets.get(hexOf(digest))?.keyRow;
  if (holder && (holder.id !== row.id || holder.organizationId !== row.organizationId))
    throw new GatewayError("invalid_argument", "The secret belongs to another key.");
}

export function createConnectionRepository(state: State): ConnectionRepository {
  const { connections } = state;
  return {
    async set({ connection, leaf, check }) {
      const known = connections.get(connectionKey(connection));
      if (known && isSameBytes(known.credential, connection.credential)) return;
      check?.(known ?? null);
      connections.set(connectionKey(connection), copyConnection(connection));
      insertLeaf(state, leaf);
    },
    async get(organizationId, gateway) {
      const known = connections.get(connectionKey({ organizationId, gateway }));
      return known ? copyConnection(known) : null;
    },
    list: async (query, paging) => connectionPage(connections, query, paging),
    async remove({ id, leaf, check, ...place }) {
      const known = connections.get(connectionKey(place));
      if (known?.id !== id) return false;
      check?.(known);
      connections.delete(connectionKey(place));
      insertLeaf(state, leaf);
      return true;
    },
    async rewrap({ from, to, leaf, ...place }) {
      const known = connections.get(connectionKey(place));
      if (!known) return false;
      if (!isSameBytes(known.wrappedKey, from)) return isSameBytes(known.wrappedKey, to.wrappedKey);
      connections.set(connectionKey(place), copyConnection({ ...known, ...to }));
      insertLeaf(state, leaf);
      return true;
    },
  };
}

/** Identifies a connection by organization and gateway. A gateway's name never contains a slash. */
function connectionKey({
  organizationId,
  gateway,
}: Pick<GatewayConnection, "organizationId" | "gateway">) {
  return `${organizationId}/${gateway}`;
}

function connectionPage(
  connections: ReadonlyMap<string, SealedConnection>,
  { organizationId, notWrappedBy }: ConnectionQuery,
  paging: StorePaging,
): StorePage<SealedConnection> {
  const rows = [...connections.values()].filter(
    (row) =>
      (organizationId === null || row.organizationId === organizationId) &&
      row.keyId !== notWrappedBy,
  );
  const placeOf = (row: SealedConnection): Place => ({ order: 0, tie: connectionKey(row) });
  const compare = (a: Place, b: Place): number => compareConnectionKeys(a.tie, b.tie);
  return mapPage(
    sortedPage({ name: "connections", rows, placeOf, compare }, paging),
    copyConnection,
  );
}

function compareConnectionKeys(a: string, b: string): number {
  const [endA, endB] = [Math.max(a.lastIndexOf("/"), 0), Math.max(b.lastIndexOf("/"), 0)];
  return (
    compareBytes(a.slice(0, endA), b.slice(0, endB)) ||
    compareBytes(a.slice(endA + 1), b.slice(endB + 1))
  );
}

function copyConnection(connection: SealedConnection): SealedConnection {
  const { credential, wrappedKey } = connection;
  return {
    ...connection,
    credential: Uint8Array.from(credential),
    wrappedKey: Uint8Array.from(wrappedKey),
  };
}

function isSameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}

/** A change increments the version and writes its leaf. */
function recordChange(state: State, leaf: EvidenceLeaf): true {
  state.budgetsVersion++;
  insertLeaf(state, leaf);
  return true;
}

/** One kind of limit: budgets, or rate limits. `forget` removes what belonged to an earlier limit with this id. */
function createLimits<Limit extends { readonly id: string }>(
  state: State,
  limits: Map<string, Limit>,
  forget: (id: string) => void = () => {},
) {
  return {
    list: async () => [...limits.values()],
    async insert(limit: Limit, leaf: EvidenceLeaf) {
      if (state.budgets.has(limit.id) || state.rateLimits.has(limit.id)) return false;
      limits.set(limit.id, limit);
      forget(limit.id);
      return recordChange(state, leaf);
    },
    async update(limit: Limit, leaf: EvidenceLeaf, check?: CheckBefore<Limit>) {
      const before = limits.get(limit.id);
      if (before === undefined) return false;
      check?.(before);
      limits.set(limit.id, limit);
      return recordChange(state, leaf);
    },
    async remove(id: string, leaf: EvidenceLeaf, check?: CheckBefore<Limit>) {
      const before = limits.get(id);
      if (before === undefined) return false;
      check?.(before);
      limits.delete(id);
      forget(id);
      return recordChange(state, leaf);
    },
  };
}

export function createRateLimitRepository(state: State): RateLimitRepository {
  return createLimits(state, state.rateLimits);
}

/** Tokens belong to no organization. */
const nobody = "";

export function createAdminTokenRepository(state: State): AdminTokenRepository {
  const { adminTokens } = state;
  const withDigest = (digest: Uint8Array): AdminTokenRow | undefined => {
    const hex = hexOf(digest);
    return adminTokens.all({ tenant: nobody, matches: (row) => row.digest === hex })[0];
  };
  return {
    async insert({ token, digest, leaf }) {
      if (withDigest(digest) !== undefined) return;
      const row = { id: token.id, organizationId: nobody, token, digest: hexOf(digest) };
      if (adminTokens.insert(row)) insertLeaf(state, leaf);
    },
    findByDigest: async (digest) => withDigest(digest)?.token ?? null,
    get: async (id) => adminTokens.get(nobody, id)?.token ?? null,
    list: async (paging) =>
      mapPage(
        adminTokens.page({ direction: "newest-first", tenant: nobody }, paging),
        ({ token }) => token,
      ),
    async revoke({ id, at, leaf }) {
      const row = adminTokens.get(nobody, id);
      if (row === null || row.token.revokedAt !== null) return false;
      row.token = { ...row.token, revokedAt: at };
      insertLeaf(state, leaf);
      return true;
    },
    async touch({ id, at }) {
      const row = adminTokens.get(nobody, id);
      if (row) row.token = { ...row.token, lastUsedAt: Math.max(row.token.lastUsedAt ?? at, at) };
    },
  };
}

export function createBudgetRepository(state: State): BudgetRepository {
  const keepRaises = (isKept: (raise: BudgetRaise) => boolean): void => {
    state.raises.splice(0, Number.POSITIVE_INFINITY, ...state.raises.filter(isKept));
  };
  const checkBudget = (id: string, check: CheckBefore<Budget> | undefined): void => {
    const budget = state.budgets.get(id);
    if (budget !== undefined) check?.(budget);
  };
  return {
    version: async () => state.budgetsVersion,
    ...createLimits(state, state.budgets, (id) => keepRaises(({ budgetId }) => budgetId !== id)),
    raises: async () => [...state.raises],
    async insertRaise(raise, leaf, max, check) {
      const { budgetId, id, at } = raise;
      checkBudget(budgetId, check);
      const others = state.raises.filter((other) => other.budgetId === budgetId);
      if (others.some((other) => other.id === id)) return false;
      if (others.filter(({ until }) => until > at).length >= max) return false;
      keepRaises((other) => other.budgetId !== budgetId || other.until > at);
      state.raises.push(raise);
      return recordChange(state, leaf);
    },
    async removeRaise({ budgetId, id }, leaf, check) {
      checkBudget(budgetId, check);
      const before = state.raises.length;
      keepRaises((raise) => raise.budgetId !== budgetId || raise.id !== id);
      return state.raises.length < before && recordChange(state, leaf);
    },
    reconcile: (query) => reconcile(ledgerOf(state), query),
    counters: async (query, paging) => state.counters.page(query, paging),
  };
}

/** The types of the ledger: a place is a position in a list that only grows. */
interface MemoryLedger {
  readonly steps: number;
  readonly corrections: number;
  readonly counters: number;
  readonly step: StepRow;
}

function ledgerOf(state: State): Ledger<MemoryLedger> {
  const { stepsWithHolds, corrections, counters } = state;
  const step = (row: StepRow): LedgerStep<StepRow> => ({
    name: row,
    isOpen: row.openSlot !== null,
    holds: row.holds,
  });
  const reads: LedgerReads<MemoryLedger> = {
    steps: (after, limit) => chunkOf(stepsWithHolds, step, after, limit),
    corrections: (after, limit) => chunkOf(corrections, corrected, after, limit),
    counters: (after, limit) =>
      chunkOf(counters.inOrder, (key) => counters.get(key) ?? [], after, limit),
    step,
    counter: (key) => counters.get(key),
  };
  return { read: async (work) => work(reads) };
}

function chunkOf<Row, Read>(
  list: readonly Row[],
  read: (row: Row) => Read | readonly Read[],
  after: number | null,
  limit: number,
): LedgerChunk<Read, number> {
  const start = after ?? 0;
  const rows = list.slice(start, start + limit).flatMap(read);
  return { rows, end: start + rows.length, isLast: rows.length < limit };
}

/** It counts for the holds of the attempt that took them. */
function corrected({ step, correction }: State["corrections"][number]): LedgerCorrection {
  const { delta, heldBy } = correction;
  return { delta, holds: step.holds.filter(({ attempt }) => attempt === heldBy) };
}
