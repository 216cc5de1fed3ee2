import type { KeyPatch } from "../contracts/store.ts";
import type { ApiKey } from "../domain/api-key.ts";
import type { LeafKind } from "../domain/evidence-leaf.ts";
import { parseModelId } from "../domain/model-id.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { createLeaf } from "../evidence/leaves.ts";
import { createSecret, displayPrefix, secretDigest } from "../identity/secret.ts";
import { sha256Hex } from "../kernel/digest.ts";
import { type Duration, parseDuration } from "../kernel/duration.ts";
import type { Line } from "../pipeline/line.ts";
import { type List, listOf, type Paging } from "./list.ts";
import { fromIso, type OrganizationScope, requireId, tenantOf, toIso } from "./tenant.ts";

/** An API key as it is shown: everything but its secret. Times are ISO 8601. */
export interface KeyRecord
  extends Omit<ApiKey, "createdAt" | "expiresAt" | "revokedAt" | "lastUsedAt"> {
  readonly createdAt: string;
  readonly expiresAt: string | null;
  readonly revokedAt: string | null;
  /** Up to 60 seconds late. */
  readonly lastUsedAt: string | null;
}

/** Who did something, for the record; an opaque id. */
export interface Acting {
  readonly actor?: string;
}

/** A new API key. */
export interface KeyCreation extends Acting {
  readonly organizationId: string;
  readonly userId: string;
  /** Shown in activity; 1 to 255 characters. */
  readonly label: string;
  /** Default: the second class of the configured order, or the minimum where that is higher. */
  readonly defaultDataClass?: string;
  /** The floor. Default: the first class. */
  readonly minimumDataClass?: string;
  /** ISO 8601; default never. */
  readonly expiresAt?: string | null;
  /** Model patterns the key is limited to; default no limit. */
  readonly models?: readonly string[] | null;
}

/** One key of an organization. */
export interface KeyReference extends Acting {
  readonly organizationId: string;
  readonly id: string;
}

/** What to change of a key; what is absent stays. */
export interface KeyChange
  extends KeyReference,
    Partial<Omit<KeyCreation, "organizationId" | "userId" | "actor">> {}

/** API keys: the credentials of applications (section 5.1). */
export interface Keys {
  /** Makes a key. The secret is shown here, once, and kept only as a digest. */
  create(creation: KeyCreation): Promise<{ readonly key: KeyRecord; readonly secret: string }>;
  /** @throws GatewayError `key_not_found` */
  get(reference: KeyReference): Promise<KeyRecord>;
  /** Newest first. */
  list(filter: OrganizationScope & { readonly userId?: string }, paging?: Paging): List<KeyRecord>;
  /** @throws GatewayError `key_not_found`, or `invalid_argument` for a default class below the floor. */
  update(change: KeyChange): Promise<KeyRecord>;
  /** Gives the key a new secret; the old one works for `overlap` more (default 0). Ownership follows the key's id. */
  rotate(
    reference: KeyReference & { readonly overlap?: Duration },
  ): Promise<{ readonly key: KeyRecord; readonly secret: string }>;
  /** Holds for the next request in every process; a running stream finishes. */
  revoke(reference: KeyReference): Promise<KeyRecord>;
}

export function createKeys(line: Line, ready: () => Promise<void>): Keys {
  const { store, clock, ids, dataClasses } = line;

  function leafOf(
    kind: LeafKind,
    { organizationId, id, actor }: KeyReference,
    facts: KeyPatch = {},
  ) {
    const { label, models, ...plain } = facts;
    return createLeaf(
      { id: ids.uuid(), organizationId, kind, at: clock.now() },
      {
        actor: actor === undefined ? null : requireId("actor", actor),
        key: id,
        ...plain,
        ...(models === undefined ? {} : { models: models && [...models] }),
        // A label is free text: only its digest is evidence.
        ...(label === undefined ? {} : { labelSha256: sha256Hex(label) }),
      },
    );
  }

  async function find({ organizationId, id }: KeyReference): Promise<ApiKey> {
    await ready();
    const key = await store.keys.get(
      requireId("organizationId", organizationId),
      requireId("id", id),
    );
    if (!key) throw notFound();
    return key;
  }

  async function change(
    reference: KeyReference,
    kind: LeafKind,
    patch: KeyPatch,
  ): Promise<KeyRecord> {
    const { organizationId, id } = reference;
    const key = await store.keys.update({
      organizationId,
      id,
      patch,
      leaf: leafOf(kind, reference, patch),
    });
    if (!key) throw notFound();
    return toKeyRecord(key);
  }

  return {
    async create(creation) {
      await ready();
      const secret = createSecret(ids);
      const minimumDataClass = creation.minimumDataClass ?? dataClasses[0] ?? "";
      const key: ApiKey = {
        id: ids.uuid(),
        organizationId: requireId("organizationId", creation.organizationId),
        userId: requireId("userId", creation.userId),
        label: requireId("label", creation.label),
        prefix: displayPrefix(secret),
        ...requireClasses(dataClasses, {
          minimumDataClass,
          defaultDataClass:
            creation.defaultDataClass ??
            higher(dataClasses, dataClasses[1] ?? minimumDataClass, minimumDataClass),
        }),
        models: requireModels(creation.models ?? null),
        createdAt: clock.now(),
        expiresAt: creation.expiresAt == null ? null : fromIso("expiresAt", creation.expiresAt),
        revokedAt: null,
        lastUsedAt: null,
      };
      const { organizationId, id } = key;
      const { label, defaultDataClass, models, expiresAt } = key;
      const leaf = leafOf(
        "key.created",
        { organizationId, id, ...(creation.actor === undefined ? {} : { actor: creation.actor }) },
        { label, defaultDataClass, minimumDataClass, models, expiresAt },
      );
      await store.keys.insert({ key, digest: secretDigest(secret), salt: ids.bytes(32), leaf });
      return { key: toKeyRecord(key), secret };
    },
    get: async (reference) => toKeyRecord(await find(reference)),
    list: (filter, paging) =>
      listOf(
        async (storePaging) => {
          await ready();
          const { userId } = filter;
          return store.keys.list(
            { organizationId: tenantOf(filter), ...(userId === undefined ? {} : { userId }) },
            storePaging,
          );
        },
        toKeyRecord,
        paging,
      ),
    async update(wanted) {
      const key = await find(wanted);
      const { label, expiresAt, models } = wanted;
      const classes = requireClasses(dataClasses, {
        defaultDataClass: wanted.defaultDataClass ?? key.defaultDataClass,
        minimumDataClass: wanted.minimumDataClass ?? key.minimumDataClass,
      });
      return change(wanted, "key.updated", {
        ...classes,
        ...(label === undefined ? {} : { label: requireId("label", label) }),
        ...(models === undefined ? {} : { models: requireModels(models) }),
        ...(expiresAt === undefined
          ? {}
          : { expiresAt: expiresAt === null ? null : fromIso("expiresAt", expiresAt) }),
      });
    },
    async rotate({ overlap = 0, ...reference }) {
      const key = await find(reference);
      const milliseconds = parseDuration(overlap);
      if (milliseconds === null)
        throw new GatewayError("invalid_argument", "overlap must be a duration.", {
          param: "overlap",
        });
      const secret = createSecret(ids);
      const prefix = displayPrefix(secret);
      const rotated = await store.keys.rotate({
        organizationId: key.organizationId,
        id: key.id,
        digest: secretDigest(secret),
        prefix,
        oldSecretsEnd: clock.now() + milliseconds,
        leaf: leafOf("key.rotated", reference),
      });
      if (!rotated) throw notFound();
      return { key: toKeyRecord({ ...key, prefix }), secret };
    },
    async revoke(reference) {
      const key = await find(reference);
      return key.revokedAt === null
        ? change(reference, "key.revoked", { revokedAt: clock.now() })
        : toKeyRecord(key);
    },
  };
}

export function toKeyRecord(key: ApiKey): KeyRecord {
  return {
    ...key,
    createdAt: toIso(key.createdAt),
    expiresAt: toIso(key.expiresAt),
    revokedAt: toIso(key.revokedAt),
    lastUsedAt: toIso(key.lastUsedAt),
  };
}

function requireClasses(
  dataClasses: readonly string[],
  classes: { readonly defaultDataClass: string; readonly minimumDataClass: string },
): { readonly defaultDataClass: string; readonly minimumDataClass: string } {
  for (const [name, value] of Object.entries(classes)) {
    if (!dataClasses.includes(value)) {
      throw new GatewayError(
        "invalid_argument",
        `${name} must be one of ${dataClasses.join(", ")}.`,
        { param: name },
      );
    }
  }
  if (
    dataClasses.indexOf(classes.defaultDataClass) < dataClasses.indexOf(classes.minimumDataClass)
  ) {
    throw new GatewayError(
      "invalid_argument",
      "defaultDataClass must not be below minimumDataClass.",
      { param: "defaultDataClass" },
    );
  }
  return classes;
}

function requireModels(models: readonly string[] | null): readonly string[] | null {
  const wrong = models?.find(
    (pattern) => typeof pattern !== "string" || parseModelId(pattern) === null,
  );
  if (wrong === undefined) return models;
  throw new GatewayError(
    "invalid_argument",
    `${String(wrong)} is not a model pattern <gateway>/<vendor>/<model>.`,
    { param: "models" },
  );
}

function higher(dataClasses: readonly string[], a: string, b: string): string {
  return dataClasses.indexOf(a) >= dataClasses.indexOf(b) ? a : b;
}

function notFound(): GatewayError {
  return new GatewayError("key_not_found", "There is no such API key in this organization.");
}
