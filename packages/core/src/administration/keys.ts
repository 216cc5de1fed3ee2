import type { KeyPatch } from "../contracts/repositories.ts";
import type { ApiKey } from "../domain/api-key.ts";
import type { EvidenceLeaf, LeafKind } from "../domain/evidence-leaf.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { createLeaf } from "../evidence/leaves.ts";
import { createSecret, displayPrefix, secretDigest } from "../identity/secret.ts";
import { sha256Hex } from "../kernel/digest.ts";
import { parseDuration } from "../kernel/duration.ts";
import type { Line } from "../pipeline/line.ts";
import { higher, requireClasses, requireModels } from "./key-arguments.ts";
import {
  type Acting,
  type KeyChange,
  type KeyCreation,
  type KeyRecord,
  type KeyReference,
  type Keys,
  toKeyRecord,
} from "./key-records.ts";
import { listOf } from "./list.ts";
import { fromIso, requireId, tenantOf } from "./tenant.ts";

export function createKeys(line: Line, ready: () => Promise<void>): Keys {
  const { store } = line;

  async function find(reference: KeyReference): Promise<ApiKey> {
    await ready();
    const key = await store.keys.get(tenantOf(reference), requireId("id", reference.id));
    if (!key) throw notFound();
    return key;
  }

  async function change(
    key: ApiKey,
    kind: LeafKind,
    { actor, ...patch }: KeyPatch & Acting,
  ): Promise<KeyRecord> {
    const { organizationId, id } = key;
    const leaf = leafOf(line, kind, key, { ...patch, ...(actor === undefined ? {} : { actor }) });
    const changed = await store.keys.update({ organizationId, id, patch, leaf });
    if (!changed) throw notFound();
    return toKeyRecord(changed);
  }

  return {
    async create(creation) {
      await ready();
      return create(line, creation);
    },
    get: async (reference) => toKeyRecord(await find(reference)),
    list: (filter, paging) =>
      listOf(
        async (storePaging) => {
          await ready();
          const { userId } = filter;
          const query = {
            organizationId: tenantOf(filter),
            ...(userId === undefined ? {} : { userId }),
          };
          return store.keys.list(query, storePaging);
        },
        toKeyRecord,
        paging,
      ),
    async update(wanted) {
      const key = await find(wanted);
      return change(key, "key.updated", { ...patchOf(line, key, wanted), ...actorOf(wanted) });
    },
    async rotate({ overlap = 0, ...reference }) {
      const key = await find(reference);
      const milliseconds = parseDuration(overlap);
      if (milliseconds !== null) return rotate(line, key, { milliseconds, ...actorOf(reference) });
      throw new GatewayError("invalid_argument", "overlap must be a duration.", {
        param: "overlap",
      });
    },
    async revoke(reference) {
      const key = await find(reference);
      if (key.revokedAt !== null) return toKeyRecord(key);
      return change(key, "key.revoked", { revokedAt: line.clock.now(), ...actorOf(reference) });
    },
  };
}

async function create(
  line: Line,
  creation: KeyCreation,
): Promise<{ readonly key: KeyRecord; readonly secret: string }> {
  const { ids, dataClasses } = line;
  const secret = createSecret(ids);
  const lowest = creation.minimumDataClass ?? dataClasses[0] ?? "";
  const key: ApiKey = {
    id: ids.uuid(),
    organizationId: requireId("organizationId", creation.organizationId),
    userId: requireId("userId", creation.userId),
    label: requireId("label", creation.label),
    prefix: displayPrefix(secret),
    ...requireClasses(dataClasses, {
      minimumDataClass: lowest,
      defaultDataClass:
        creation.defaultDataClass ?? higher(dataClasses, dataClasses[1] ?? lowest, lowest),
    }),
    models: requireModels(creation.models ?? null),
    createdAt: line.clock.now(),
    expiresAt: creation.expiresAt == null ? null : fromIso("expiresAt", creation.expiresAt),
    revokedAt: null,
    lastUsedAt: null,
  };
  const { label, defaultDataClass, minimumDataClass, models, expiresAt } = key;
  const leaf = leafOf(line, "key.created", key, {
    label,
    defaultDataClass,
    minimumDataClass,
    models,
    expiresAt,
    ...actorOf(creation),
  });
  await line.store.keys.insert({ key, digest: secretDigest(secret), salt: ids.bytes(32), leaf });
  return { key: toKeyRecord(key), secret };
}

async function rotate(
  line: Line,
  key: ApiKey,
  { milliseconds, ...acting }: { readonly milliseconds: number } & Acting,
): Promise<{ readonly key: KeyRecord; readonly secret: string }> {
  const secret = createSecret(line.ids);
  const prefix = displayPrefix(secret);
  const rotated = await line.store.keys.rotate({
    organizationId: key.organizationId,
    id: key.id,
    digest: secretDigest(secret),
    prefix,
    oldSecretsEnd: line.clock.now() + milliseconds,
    leaf: leafOf(line, "key.rotated", key, acting),
  });
  if (!rotated) throw notFound();
  return { key: toKeyRecord({ ...key, prefix }), secret };
}

function patchOf(
  { dataClasses }: Line,
  key: ApiKey,
  { label, expiresAt, models, ...wanted }: KeyChange,
): KeyPatch {
  return {
    ...requireClasses(dataClasses, {
      defaultDataClass: wanted.defaultDataClass ?? key.defaultDataClass,
      minimumDataClass: wanted.minimumDataClass ?? key.minimumDataClass,
    }),
    ...(label === undefined ? {} : { label: requireId("label", label) }),
    ...(models === undefined ? {} : { models: requireModels(models) }),
    ...(expiresAt === undefined
      ? {}
      : { expiresAt: expiresAt === null ? null : fromIso("expiresAt", expiresAt) }),
  };
}

function leafOf(
  { ids, clock }: Line,
  kind: LeafKind,
  { organizationId, id }: ApiKey,
  { actor, label, models, ...facts }: KeyPatch & Acting,
): EvidenceLeaf {
  return createLeaf(
    { id: ids.uuid(), organizationId, kind, at: clock.now() },
    {
      actor: actor === undefined ? null : requireId("actor", actor),
      key: id,
      ...facts,
      ...(models === undefined ? {} : { models: models && [...models] }),
      // A label is free text: only its digest is evidence.
      ...(label === undefined ? {} : { labelSha256: sha256Hex(label) }),
    },
  );
}

function actorOf({ actor }: Acting): Acting {
  return actor === undefined ? {} : { actor };
}

function notFound(): GatewayError {
  return new GatewayError("key_not_found", "There is no such API key in this organization.");
}
