import { GatewayError } from "../errors/gateway-error.ts";
import { sha256Hex } from "../kernel/digest.ts";
import type { IdSource } from "../kernel/ids.ts";
import { etagOf } from "./etag.ts";

/** Makes a repeated creation return what the first one made. */
export interface Idempotent {
  /**
   * 1 to 255 visible ASCII characters, such as a UUID that you choose for one creation. A repeat with the same key and the same
   * arguments creates nothing and returns the existing record, without its secret. An idempotency key applies to one actor,
   * one method, and one organization, budget or Step. Default: every call creates a record.
   */
  readonly idempotencyKey?: string;
}

/** A creation without an idempotency key, which is never a repeat. */
export interface NotIdempotent {
  readonly idempotencyKey?: never;
}

/** A method that creates a record with a secret. The secret is null only in the answer to a repeat. */
interface CreatesSecret<Options, Created extends { readonly secret: string | null }> {
  (creation: Options & NotIdempotent): Promise<Created & { readonly secret: string }>;
  (creation: Options & Idempotent): Promise<Created>;
}

/** Types a method that creates a record with a secret. */
export function createsSecret<Options, Created extends { readonly secret: string | null }>(
  method: (creation: Options & Idempotent) => Promise<Created>,
): CreatesSecret<Options, Created> {
  function create(
    creation: Options & NotIdempotent,
  ): Promise<Created & { readonly secret: string }>;
  function create(creation: Options & Idempotent): Promise<Created>;
  function create(creation: Options & Idempotent): Promise<Created> {
    return method(creation);
  }
  return create;
}

/**
 * The id of a new record. With an idempotency key, it's the same for every repeat, so the store writes the record once.
 * `place` names the method and the scope in which the key is unique.
 */
export function idOfCreation(
  ids: Pick<IdSource, "uuid">,
  { idempotencyKey, actor }: Idempotent & { readonly actor?: string },
  ...place: readonly string[]
): string {
  if (idempotencyKey === undefined) return ids.uuid();
  const hex = sha256Hex(JSON.stringify([...place, actor ?? null, idempotencyKey]));
  const variant = (8 | (Number.parseInt(hex.charAt(16), 16) & 3)).toString(16);
  // Version 8 is for UUIDs that aren't random and have no time.
  const last = [`8${hex.slice(13, 16)}`, `${variant}${hex.slice(17, 20)}`, hex.slice(20, 32)];
  return [hex.slice(0, 8), hex.slice(8, 12), ...last].join("-");
}

/**
 * Compares what a repeated creation asks for with what exists.
 * @throws GatewayError `idempotency_mismatch`
 */
export function requireSame(existing: object | null, asked: object): void {
  if (existing !== null && etagOf(existing) === etagOf(asked)) return;
  throw new GatewayError(
    "idempotency_mismatch",
    "This idempotency key was already used with other arguments, or its record has changed since. Use a new one.",
  );
}

const replayed = Symbol("replayed");

/** Marks the result of a repeated creation. The mark doesn't show in listings, comparisons or JSON. */
export function asReplayed<Result extends object>(result: Result): Result {
  return Object.defineProperty(result, replayed, { value: true });
}

/**
 * Whether a creation with an `idempotencyKey` created nothing, because an earlier call had created the record. Pass the same
 * object that the method returned: a copy has no mark.
 */
export function isReplayed(result: object): boolean {
  return replayed in result;
}
