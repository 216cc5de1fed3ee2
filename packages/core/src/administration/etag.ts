import { GatewayError } from "../errors/gateway-error.ts";
import { sha256Hex } from "../kernel/digest.ts";
import { type Json, stableJson } from "../kernel/stable-json.ts";

/** Makes a change only if nothing else changed the record. */
export interface IfMatch {
  /** The tag of the record as it was read: `etagOf(record)`. Default: the change is made whatever the record is now. */
  readonly ifMatch?: string;
}

/**
 * The tag of a key, connection, budget or rate limit, for `ifMatch`: equal for equal records, and different after a change.
 * When a key was last used doesn't count.
 */
export function etagOf(record: object): string {
  const written = JSON.stringify(record, (name, value: unknown) =>
    name === "lastUsedAt" ? undefined : value,
  );
  const members: Json = JSON.parse(written);
  return sha256Hex(stableJson(members)).slice(0, 32);
}

/**
 * Compares the tag that a change expects with the record that it is about to change.
 * @throws GatewayError `precondition_failed`
 */
export function requireMatch(
  { ifMatch }: { readonly ifMatch?: string | undefined },
  record: object | null,
): void {
  if (ifMatch === undefined || (record !== null && ifMatch === etagOf(record))) return;
  throw new GatewayError(
    "precondition_failed",
    "The record has changed since it was read: read it again first.",
  );
}
