import type {
  KeyEntry,
  KeyName,
  KeyPatch,
  KeyQuery,
  KeyRepository,
  KeyWithSalt,
} from "../contracts/key-repository.ts";
import type { ApiKey, LeadingSystem } from "../domain/api-key.ts";
import type { EvidenceLeaf, LeafKind } from "../domain/evidence-leaf.ts";
import type { ModelAliases } from "../domain/model-id.ts";
import { GatewayError, invalidArgument } from "../errors/gateway-error.ts";
import { changeLeaf } from "../evidence/leaves.ts";
import { higher, requireClass, requireClasses } from "../identity/key-arguments.ts";
import type { NamedCaller } from "../identity/named-caller.ts";
import { createSecret, displayPrefix, secretDigest } from "../identity/secret.ts";
import { filters, invalidInput, read } from "../input/read.ts";
import { sha256Hex } from "../kernel/digest.ts";
import { type Duration, parseDuration } from "../kernel/duration.ts";
import { yieldToEventLoop } from "../kernel/event-loop.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import { aliasProblems } from "../routing/route.ts";
import { reportChange } from "./changes.ts";
import { type IfMatch, requireMatch } from "./etag.ts";
import {
  asReplayed,
  createsSecret,
  type Idempotent,
  idOfCreation,
  type NotIdempotent,
  requireSame,
} from "./idempotency.ts";
import { type List, listOf, type Paging } from "./list.ts";
import { method, withStoreErrors } from "./method.ts";
import {
  keyChange,
  keyCreation,
  keyFilter,
  keyReference,
  keyRevocation,
  keyRotation,
  keysOfUser,
} from "./schemas.ts";
import { fromIso, type OrganizationScope, tenantOf, toIso } from "./tenant.ts";

/** An API key without its secret. Times are ISO 8601. */
export interface KeyRecord
  extends Omit<ApiKey, "createdAt" | "expiresAt" | "revokedAt" | "lastUsedAt" | "version"> {
  readonly createdAt: string;
  readonly expiresAt: string | null;
  readonly revokedAt: string | null;
  /** Up to 60 seconds late. */
  readonly lastUsedAt: string | null;
}

/** Who makes a change, as an opaque id for the record. */
export interface WithActor {
  readonly actor?: string;
}

/** A new API key. */
export interface CreateKeyOptions extends WithActor {
  readonly organizationId: string;
  readonly userId: string;
  /** Shown in activity. 1 to 255 characters. */
  readonly label: string;
  /** Default: the second class of the configured order, or the minimum if that is higher. */
  readonly defaultDataClass?: string;
  /** No request of the key can have a lower class. Default: the first class. */
  readonly minimumDataClass?: string;
  /** ISO 8601. Default: never. */
  readonly expiresAt?: string | null;
  /** Model patterns that the key is limited to. Default: no limit. */
  readonly models?: readonly string[] | null;
  /**
   * Plain names for models, such as `{ "gpt-5": "openai/openai/gpt-5" }`. They come before the gateway's. At most 100. A change
   * replaces all of them, and `null` removes them. Default: none.
   */
  readonly aliases?: ModelAliases | null;
  /**
   * Where the system and developer messages at the start of a conversation belong: to its `history`, or `apart` from it, to
   * the Step's instructions. Use `apart` for agents that change them with every request. Default `null`: the gateway's
   * option `sessions.leadingSystem` applies.
   */
  readonly leadingSystem?: LeadingSystem | null;
}

/** One key, by its id. */
export interface KeyReference extends WithActor, OrganizationScope {
  readonly id: string;
}

/** Changes to a key. Absent members stay as they are. */
export interface UpdateKeyOptions
  extends KeyReference,
    IfMatch,
    Partial<Omit<CreateKeyOptions, "organizationId" | "userId" | "actor">> {}

/** All keys of one user of an organization. */
export interface UserKeysReference extends WithActor {
  readonly organizationId: string;
  readonly userId: string;
}

/** How many keys of a user were revoked. */
export interface RevokedKeys {
  readonly revoked: number;
}

/** Selects keys. Every given member must match. */
export interface KeyFilter extends OrganizationScope {
  readonly userId?: string;
  readonly label?: string;
  /** True for keys that work now, false for keys that are revoked or expired. */
  readonly live?: boolean;
}

/** A key with its new secret. The secret is shown only here: Tollgate keeps a digest of it. */
export interface KeyWithSecret {
  readonly key: KeyRecord;
  readonly secret: string;
}

/** A key that was created with an idempotency key. `secret` is null for a repeat, because Tollgate doesn't store it. */
export interface CreatedKey {
  readonly key: KeyRecord;
  readonly secret: string | null;
}

/**
 * API keys, the credentials of applications. Every change is recorded with its actor, in the transaction that
 * makes it. An invalid argument is a GatewayError `invalid_argument` and changes nothing.
 */
export interface Keys {
  /** Creates a key. Its secret is returned once; Tollgate keeps only a digest. */
  create(creation: CreateKeyOptions & NotIdempotent): Promise<KeyWithSecret>;
  /**
   * The same, once per idempotency key. A repeat returns the API key as it is now, without its secret.
   * @throws GatewayError `idempotency_mismatch`
   */
  create(creation: CreateKeyOptions & Idempotent): Promise<CreatedKey>;
  /** @throws GatewayError `key_not_found` */
  get(reference: KeyReference): Promise<KeyRecord>;
  /** Newest first. */
  list(filter: KeyFilter, paging?: Paging): List<KeyRecord>;
  /**
   * Changes the given members. Without any, it changes and records nothing. Restrictions apply to the next request in every
   * process, extensions within 5 seconds. `models` can only narrow what the policy permits.
   * @throws GatewayError `key_not_found`, `key_not_live` for a revoked key, or `invalid_argument`, such as for a default
   * class below the minimum; `precondition_failed`
   */
  update(change: UpdateKeyOptions): Promise<KeyRecord>;
  /**
   * Gives the key a new secret. The old one keeps working for `overlap`, at most 365 days (default 0). Ownership follows
   * the key's id and stays.
   * @throws GatewayError `key_not_found`, or `key_not_live` for a key that is revoked or expired; `precondition_failed`
   */
  rotate(
    reference: KeyReference & IfMatch & { readonly overlap?: Duration },
  ): Promise<KeyWithSecret>;
  /** Applies to the next request in every process. Running streams finish. @throws GatewayError `key_not_found`, `precondition_failed` */
  revoke(reference: KeyReference & IfMatch): Promise<KeyRecord>;
  /**
   * Revokes all keys of the user that aren't revoked yet, newest first. Other requests can run after every 25 of them. If it
   * fails, some keys may be revoked already, each with its record: call it again to revoke the rest. Keys that are created
   * after it began stay. Expired keys are revoked too, so a later expiry can't revive them. Returns the number of keys
   * that it revoked: `list` shows them, and `changes.list` shows each revocation.
   */
  revoke(reference: UserKeysReference): Promise<RevokedKeys>;
}

type KeyCreation = CreateKeyOptions & Idempotent;

export function createKeys(context: GatewayContext, ready: () => Promise<void>): Keys {
  const { store } = context;

  async function find(reference: KeyReference): Promise<ApiKey> {
    await ready();
    const key = await store.keys.get(tenantOf(reference), reference.id);
    if (key) return key;
    throw new GatewayError("key_not_found", "Unknown id: this organization has no such API key.");
  }

  return {
    create: createsSecret<CreateKeyOptions, CreatedKey>(
      method<KeyCreation, CreatedKey>(keyCreation, async (creation) => {
        await ready();
        const secret = createSecret(context.ids);
        const { key, ...entry } = newKey(context, creation, displayPrefix(secret));
        const digest = secretDigest(secret);
        await store.keys.insert({ ...entry, key, digest });
        const isRepeat =
          creation.idempotencyKey !== undefined &&
          (await store.keys.findByDigest(digest, key.createdAt)) === null;
        if (isRepeat) return repeated(await store.keys.get(key.organizationId, key.id), key);
        reportChange(context, entry.leaf);
        return { key: toKeyRecord(key), secret };
      }),
    ),
    get: method(keyReference, async (reference) => toKeyRecord(await find(reference))),
    list: (filter, paging) =>
      listOf(
        async (storePaging) => {
          const query = queryOf(read(keyFilter, filter, filters), context.clock.now());
          await ready();
          return store.keys.list(query, storePaging);
        },
        toKeyRecord,
        paging,
      ),
    update: method(keyChange, async (change) => {
      const { organizationId, id } = await find(change);
      const changed = await changeKey(context, { organizationId, id }, (key) => {
        requireMatch(change, toKeyRecord(key));
        const patch = patchOf(context, key, change);
        if (Object.keys(patch).length === 0) return null;
        const leaf = keyLeaf(context, "key.updated", key, { ...patch, ...actorOf(change) });
        return { patch, leaf };
      });
      return toKeyRecord(changed ?? (await find(change)));
    }),
    rotate: method(keyRotation, async ({ overlap = 0, ...reference }) => {
      const milliseconds = parseDuration(overlap) ?? 0;
      const check = (key: ApiKey) => requireMatch(reference, toKeyRecord(key));
      return rotate(context, await find(reference), { milliseconds, check, ...actorOf(reference) });
    }),
    revoke: createRevoke(context, { find, ready }),
  };
}

/**
 * Returns the caller's key record without a secret, and creates it if there is none. Such a record sets no restrictions by
 * itself: those that the host passes apply in addition to those that an administrator sets on the record.
 */
export async function ensureKey(
  context: GatewayContext,
  { organizationId, userId, label }: NamedCaller,
): Promise<KeyWithSalt> {
  const entry = newKey(context, { organizationId, userId, label }, "");
  const found = await context.store.keys.ensure(entry);
  if (found.key.id === entry.key.id) reportChange(context, entry.leaf);
  return found;
}

/** Changes a key as `keys.change` of the store does, and reports the change. The store may decide again before it writes. */
async function changeKey(
  context: GatewayContext,
  name: KeyName,
  decide: Parameters<KeyRepository["change"]>[1],
): Promise<ApiKey | null> {
  let leaf: EvidenceLeaf | undefined;
  const changed = await context.store.keys.change(name, (key) => {
    const change = decide(key);
    leaf = change?.leaf;
    return change;
  });
  if (changed !== null) reportChange(context, leaf);
  return changed;
}

function toKeyRecord({ version: _version, ...key }: ApiKey): KeyRecord {
  return {
    ...key,
    createdAt: toIso(key.createdAt),
    expiresAt: toIso(key.expiresAt),
    revokedAt: toIso(key.revokedAt),
    lastUsedAt: toIso(key.lastUsedAt),
  };
}

function queryOf(filter: KeyFilter, at: number): KeyQuery {
  const { live, userId, label } = filter;
  return {
    organizationId: tenantOf(filter),
    ...(userId === undefined ? {} : { userId }),
    ...(label === undefined ? {} : { label }),
    ...(live === undefined ? {} : { live: { at, is: live } }),
  };
}

/** The answer to a repeated creation: the existing key. */
function repeated(existing: ApiKey | null, asked: ApiKey): CreatedKey {
  const { id, prefix, createdAt, revokedAt, lastUsedAt, version } = existing ?? asked;
  requireSame(existing, { ...asked, id, prefix, createdAt, revokedAt, lastUsedAt, version });
  return asReplayed({ key: toKeyRecord(existing ?? asked), secret: null });
}

/** `prefix` is empty for a key without a secret. */
function newKey(context: GatewayContext, creation: KeyCreation, prefix: string): KeyEntry {
  const { ids, clock } = context;
  const { organizationId } = creation;
  const key: ApiKey = {
    id: idOfCreation(ids, creation, "keys.create", organizationId),
    organizationId,
    userId: creation.userId,
    label: creation.label,
    prefix,
    ...classesOf(context.dataClasses, creation),
    models: creation.models ?? null,
    aliases: aliasesOf(context, creation.aliases ?? null),
    leadingSystem: creation.leadingSystem ?? null,
    createdAt: clock.now(),
    expiresAt: expiryOf(context, creation.expiresAt ?? null),
    revokedAt: null,
    lastUsedAt: null,
    version: 0,
  };
  const { label, defaultDataClass, minimumDataClass, models, aliases, leadingSystem, expiresAt } =
    key;
  const classes = { defaultDataClass, minimumDataClass };
  const facts = { label, ...classes, models, aliases, leadingSystem, expiresAt };
  return {
    key,
    salt: ids.bytes(32),
    leaf: keyLeaf(context, "key.created", key, { ...facts, ...actorOf(creation) }),
  };
}

function classesOf(dataClasses: readonly string[], creation: CreateKeyOptions) {
  const minimumDataClass = requireClass(
    dataClasses,
    "minimumDataClass",
    creation.minimumDataClass ?? dataClasses[0],
  );
  const usual = higher(dataClasses, dataClasses[1] ?? minimumDataClass, minimumDataClass);
  const defaultDataClass = creation.defaultDataClass ?? usual;
  return requireClasses(dataClasses, { defaultDataClass, minimumDataClass });
}

/** The aliases to keep: null if they are none. A mistyped target would fail only when someone calls it. */
function aliasesOf({ router }: GatewayContext, aliases: ModelAliases | null): ModelAliases | null {
  const problems = aliasProblems(aliases ?? {}, router);
  if (problems.length > 0) throw invalidInput(problems, "invalid_argument");
  return aliases !== null && Object.keys(aliases).length > 0 ? aliases : null;
}

/** When a key stops working; null for never. */
function expiryOf({ clock }: GatewayContext, time: string | null): number | null {
  const expiresAt = time === null ? null : fromIso(time);
  if (expiresAt === null || expiresAt > clock.now()) return expiresAt;
  throw invalidArgument("expiresAt", "`expiresAt` must be in the future.");
}

async function rotate(
  context: GatewayContext,
  key: ApiKey,
  {
    milliseconds,
    check,
    ...actor
  }: { readonly milliseconds: number; readonly check: (key: ApiKey) => void } & WithActor,
): Promise<KeyWithSecret> {
  const { organizationId, id } = key;
  if (key.prefix === "") throw invalidArgument("id", "This API key has no secret to rotate.");
  const secret = createSecret(context.ids);
  const at = context.clock.now();
  const leaf = keyLeaf(context, "key.rotated", key, actor);
  const rotated = await context.store.keys.rotate({
    organizationId,
    id,
    at,
    digest: secretDigest(secret),
    prefix: displayPrefix(secret),
    oldSecretsEnd: at + milliseconds,
    check,
    leaf,
  });
  if (!rotated) throw notLive("This API key is revoked or expired: create a new one.");
  reportChange(context, leaf);
  return { key: toKeyRecord(rotated), secret };
}

/** The changes to a key as it is now. It may have changed since it was read. */
function patchOf(context: GatewayContext, key: ApiKey, change: UpdateKeyOptions): KeyPatch {
  const { label, expiresAt, models, aliases, leadingSystem } = change;
  const { defaultDataClass, minimumDataClass } = change;
  if (key.revokedAt !== null) throw notLive("This API key is revoked and can't change.");
  if (key.prefix === "" && label !== undefined && label !== key.label)
    throw invalidArgument("label", "`label` identifies a key without a secret and can't change.");
  const classes = {
    ...(defaultDataClass === undefined ? {} : { defaultDataClass }),
    ...(minimumDataClass === undefined ? {} : { minimumDataClass }),
  };
  requireClasses(context.dataClasses, {
    defaultDataClass: key.defaultDataClass,
    minimumDataClass: key.minimumDataClass,
    ...classes,
  });
  return {
    ...classes,
    ...(label === undefined ? {} : { label }),
    ...(models === undefined ? {} : { models }),
    ...(aliases === undefined ? {} : { aliases: aliasesOf(context, aliases) }),
    ...(leadingSystem === undefined ? {} : { leadingSystem }),
    ...(expiresAt === undefined ? {} : { expiresAt: expiryOf(context, expiresAt) }),
  };
}

/** How many keys of a user are revoked at once. */
const keysAtOnce = 25;

/** Revokes one key, or all keys of a user. A key that is revoked already keeps the time of its revocation. */
function createRevoke(
  context: GatewayContext,
  {
    find,
    ready,
  }: {
    readonly find: (reference: KeyReference) => Promise<ApiKey>;
    readonly ready: () => Promise<void>;
  },
): Keys["revoke"] {
  function revokeNamed(
    { organizationId, id }: KeyName,
    acting: WithActor & IfMatch,
    revokedAt = context.clock.now(),
  ): Promise<ApiKey | null> {
    const facts = { revokedAt, ...actorOf(acting) };
    return changeKey(context, { organizationId, id }, (key) => {
      requireMatch(acting, toKeyRecord(key));
      if (key.revokedAt !== null) return null;
      return { patch: { revokedAt }, leaf: keyLeaf(context, "key.revoked", key, facts) };
    });
  }

  async function revokeOne(reference: KeyReference & IfMatch): Promise<KeyRecord> {
    const revoked = await revokeNamed(await find(reference), reference);
    return toKeyRecord(revoked ?? (await find(reference)));
  }

  async function revokeOfUser({
    organizationId,
    userId,
    ...acting
  }: UserKeysReference): Promise<RevokedKeys> {
    await ready();
    const revokedAt = context.clock.now();
    let revoked = 0;
    // Newest first, so keys that are created meanwhile aren't on later pages.
    for (let cursor: string | null = null; ; ) {
      const paging = { cursor, limit: keysAtOnce };
      const page = await context.store.keys.list({ organizationId, userId }, paging);
      const live = page.data.filter((key) => key.revokedAt === null);
      const changes = live.map((key) => revokeNamed(key, acting, revokedAt));
      // Each change is reported, even if another one fails.
      await Promise.allSettled(changes);
      revoked += (await Promise.all(changes)).filter((key) => key !== null).length;
      if (page.nextCursor === null) return { revoked };
      cursor = page.nextCursor;
      await yieldToEventLoop();
    }
  }

  function revoke(reference: KeyReference & IfMatch): Promise<KeyRecord>;
  function revoke(reference: UserKeysReference): Promise<RevokedKeys>;
  async function revoke(
    reference: (KeyReference & IfMatch) | UserKeysReference,
  ): Promise<KeyRecord | RevokedKeys> {
    return isOfUser(reference)
      ? withStoreErrors(revokeOfUser(read(keysOfUser, reference)))
      : withStoreErrors(revokeOne(read(keyRevocation, reference)));
  }
  return revoke;
}

function isOfUser(reference: KeyReference | UserKeysReference): reference is UserKeysReference {
  return Object(reference).userId !== undefined;
}

/** The leaf of a change to a key. A label is free text, so the leaf holds only its digest. */
function keyLeaf(
  context: Pick<GatewayContext, "ids" | "clock">,
  kind: LeafKind,
  { organizationId, id }: Pick<ApiKey, "organizationId" | "id">,
  { actor, label, models, aliases, ...facts }: KeyPatch & WithActor,
): EvidenceLeaf {
  const place = { kind, organizationId, actor };
  return changeLeaf(context, place, {
    key: id,
    ...facts,
    ...(models === undefined ? {} : { models: models && [...models] }),
    ...(aliases === undefined ? {} : { aliases: aliases && { ...aliases } }),
    ...(label === undefined ? {} : { labelSha256: sha256Hex(label) }),
  });
}

function actorOf({ actor }: WithActor): WithActor {
  return actor === undefined ? {} : { actor };
}

function notLive(message: string): GatewayError {
  return new GatewayError("key_not_live", message);
}
