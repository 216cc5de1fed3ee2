import type { KeyWithSalt } from "../contracts/key-repository.ts";
import type { Caller } from "../domain/caller.ts";
import { higher } from "./key-arguments.ts";
import type { NamedCaller } from "./named-caller.ts";

/** The caller behind an API key. */
export function callerOfKey({ key, salt }: KeyWithSalt): Caller {
  return {
    organizationId: key.organizationId,
    userId: key.userId,
    keyId: key.id,
    keyLabel: key.label,
    keyVersion: key.version,
    source: "api",
    defaultDataClass: key.defaultDataClass,
    minimumDataClass: key.minimumDataClass,
    allowlists: key.models === null ? [] : [key.models],
    aliases: key.aliases && new Map(Object.entries(key.aliases)),
    leadingSystem: key.leadingSystem,
    salt,
  };
}

/** The caller that the host names, on the key record kept for it. The restrictions of both apply. */
export function callerOfHost(
  caller: Caller,
  named: NamedCaller,
  dataClasses: readonly string[],
): Caller {
  const { minimumDataClass: floor, models } = named;
  const minimumDataClass = higher(
    dataClasses,
    caller.minimumDataClass,
    floor ?? caller.minimumDataClass,
  );
  const usual = named.defaultDataClass ?? caller.defaultDataClass;
  return {
    ...caller,
    source: named.source,
    defaultDataClass: higher(dataClasses, usual, minimumDataClass),
    minimumDataClass,
    allowlists: models === null ? caller.allowlists : [...caller.allowlists, models],
  };
}
