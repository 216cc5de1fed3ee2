import type { KeyEntry } from "../contracts/key-repository.ts";
import type { ApiKey } from "../domain/api-key.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { higher, requireClass, requireClasses } from "../identity/key-arguments.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import { keyLeaf } from "./key-leaf.ts";
import type { CreateKeyOptions } from "./key-records.ts";
import { fromIso } from "./tenant.ts";

/** A key as a creation asks for it; `prefix` is empty for one without a secret. */
export function newKey(line: GatewayContext, creation: CreateKeyOptions, prefix: string): KeyEntry {
  const { ids, clock } = line;
  const { actor } = creation;
  const key: ApiKey = {
    id: ids.uuid(),
    organizationId: creation.organizationId,
    userId: creation.userId,
    label: creation.label,
    prefix,
    ...classesOf(line.dataClasses, creation),
    models: creation.models ?? null,
    createdAt: clock.now(),
    expiresAt: expiryOf(line, creation.expiresAt ?? null),
    revokedAt: null,
    lastUsedAt: null,
    version: 0,
  };
  const { label, defaultDataClass, minimumDataClass, models, expiresAt } = key;
  const facts = { label, defaultDataClass, minimumDataClass, models, expiresAt };
  const acting = actor === undefined ? {} : { actor };
  return {
    key,
    salt: ids.bytes(32),
    leaf: keyLeaf(line, "key.created", key, { ...facts, ...acting }),
  };
}

/** When a key stops working, which is in the future; null for never. */
export function expiryOf({ clock }: GatewayContext, written: string | null): number | null {
  const expiresAt = written === null ? null : fromIso(written);
  if (expiresAt === null || expiresAt > clock.now()) return expiresAt;
  throw new GatewayError("invalid_argument", "expiresAt must be in the future.", {
    param: "expiresAt",
  });
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
