import type { KeyPatch } from "../contracts/key-repository.ts";
import type { ApiKey } from "../domain/api-key.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { requireClasses } from "../identity/key-arguments.ts";
import { createSecret, displayPrefix, secretDigest } from "../identity/secret.ts";
import { filters, read } from "../input/read.ts";
import { parseDuration } from "../kernel/duration.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import { checked } from "./arguments.ts";
import { keyLeaf } from "./key-leaf.ts";
import { keyQuery } from "./key-query.ts";
import {
  type KeyReference,
  type Keys,
  type KeyWithSecret,
  toKeyRecord,
  type UpdateKeyOptions,
  type WithActor,
} from "./key-records.ts";
import { listOf } from "./list.ts";
import { expiryOf, newKey } from "./new-key.ts";
import { createRevoke } from "./revoke-keys.ts";
import { keyChange, keyCreation, keyFilter, keyReference, keyRotation } from "./schemas.ts";
import { tenantOf } from "./tenant.ts";

export function createKeys(line: GatewayContext, ready: () => Promise<void>): Keys {
  const { store } = line;

  async function find(reference: KeyReference): Promise<ApiKey> {
    await ready();
    const key = await store.keys.get(tenantOf(reference), reference.id);
    if (!key)
      throw new GatewayError("key_not_found", "There is no such API key in this organization.");
    return key;
  }

  return {
    create: checked(keyCreation, async (creation) => {
      await ready();
      const secret = createSecret(line.ids);
      const entry = newKey(line, creation, displayPrefix(secret));
      await store.keys.insert({ ...entry, digest: secretDigest(secret) });
      return { key: toKeyRecord(entry.key), secret };
    }),
    get: checked(keyReference, async (reference) => toKeyRecord(await find(reference))),
    list: (filter, paging) =>
      listOf(
        async (storePaging) => {
          const query = keyQuery(read(keyFilter, filter, filters), line.clock.now());
          await ready();
          return store.keys.list(query, storePaging);
        },
        toKeyRecord,
        paging,
      ),
    update: checked(keyChange, async (wanted) => {
      const { organizationId, id } = await find(wanted);
      const [changed] = await store.keys.change({ organizationId, id }, (key) => {
        const patch = patchOf(line, key, wanted);
        return { patch, leaf: keyLeaf(line, "key.updated", key, { ...patch, ...actorOf(wanted) }) };
      });
      return toKeyRecord(changed ?? (await find(wanted)));
    }),
    rotate: checked(keyRotation, async ({ overlap = 0, ...reference }) => {
      const milliseconds = parseDuration(overlap) ?? 0;
      return rotate(line, await find(reference), { milliseconds, ...actorOf(reference) });
    }),
    revoke: createRevoke(line, find),
  };
}

async function rotate(
  line: GatewayContext,
  key: ApiKey,
  { milliseconds, ...acting }: { readonly milliseconds: number } & WithActor,
): Promise<KeyWithSecret> {
  const { organizationId, id } = key;
  if (key.prefix === "")
    throw new GatewayError("invalid_argument", "The API key has no secret to rotate.", {
      param: "id",
    });
  const secret = createSecret(line.ids);
  const at = line.clock.now();
  const rotated = await line.store.keys.rotate({
    organizationId,
    id,
    at,
    digest: secretDigest(secret),
    prefix: displayPrefix(secret),
    oldSecretsEnd: at + milliseconds,
    leaf: keyLeaf(line, "key.rotated", key, acting),
  });
  if (!rotated) throw notLive("The API key is revoked or expired: it gets no new secret.");
  return { key: toKeyRecord(rotated), secret };
}

/** What changes of a key as it is now: another change may have come between. */
function patchOf(line: GatewayContext, key: ApiKey, wanted: UpdateKeyOptions): KeyPatch {
  const { label, expiresAt, models, defaultDataClass, minimumDataClass } = wanted;
  if (key.revokedAt !== null) throw notLive("The API key is revoked: it stays as it is.");
  if (key.prefix === "" && label !== undefined && label !== key.label)
    throw new GatewayError("invalid_argument", "A key without a secret is found by its label.", {
      param: "label",
    });
  const classes = {
    ...(defaultDataClass === undefined ? {} : { defaultDataClass }),
    ...(minimumDataClass === undefined ? {} : { minimumDataClass }),
  };
  requireClasses(line.dataClasses, {
    defaultDataClass: key.defaultDataClass,
    minimumDataClass: key.minimumDataClass,
    ...classes,
  });
  return {
    ...classes,
    ...(label === undefined ? {} : { label }),
    ...(models === undefined ? {} : { models }),
    ...(expiresAt === undefined ? {} : { expiresAt: expiryOf(line, expiresAt) }),
  };
}

function actorOf({ actor }: WithActor): WithActor {
  return actor === undefined ? {} : { actor };
}

function notLive(message: string): GatewayError {
  return new GatewayError("key_not_live", message);
}
