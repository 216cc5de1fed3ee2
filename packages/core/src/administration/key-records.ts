import type { ApiKey } from "../domain/api-key.ts";
import type { Duration } from "../kernel/duration.ts";
import type { List, Paging } from "./list.ts";
import { type OrganizationScope, toIso } from "./tenant.ts";

/** An API key as it is shown: everything but its secret. Times are ISO 8601. */
export interface KeyRecord
  extends Omit<ApiKey, "createdAt" | "expiresAt" | "revokedAt" | "lastUsedAt" | "version"> {
  readonly createdAt: string;
  readonly expiresAt: string | null;
  readonly revokedAt: string | null;
  /** Up to 60 seconds late. */
  readonly lastUsedAt: string | null;
}

/** Who did something, for the record; an opaque id. */
export interface WithActor {
  readonly actor?: string;
}

/** A new API key. */
export interface CreateKeyOptions extends WithActor {
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

/** One key: of an organization, or of whichever it belongs to. */
export interface KeyReference extends WithActor, OrganizationScope {
  readonly id: string;
}

/** What to change of a key; what is absent stays. */
export interface UpdateKeyOptions
  extends KeyReference,
    Partial<Omit<CreateKeyOptions, "organizationId" | "userId" | "actor">> {}

/** All keys of one user of an organization. */
export interface UserKeysReference extends WithActor {
  readonly organizationId: string;
  readonly userId: string;
}

/** Which keys to list; every given member must match. */
export interface KeyFilter extends OrganizationScope {
  readonly userId?: string;
  readonly label?: string;
  /** True for keys that work now, false for those that are revoked or expired. */
  readonly live?: boolean;
}

/** A key and its new secret, which is shown this once and kept only as a digest. */
export interface KeyWithSecret {
  readonly key: KeyRecord;
  readonly secret: string;
}

/**
 * API keys: the credentials of applications (section 5.1). Every change is on record, with its actor, in the transaction
 * that makes it. Malformed arguments are a GatewayError `invalid_argument` that names them, and change nothing.
 */
export interface Keys {
  /** Makes a key. The secret is shown here, once, and kept only as a digest. */
  create(creation: CreateKeyOptions): Promise<KeyWithSecret>;
  /** @throws GatewayError `key_not_found` */
  get(reference: KeyReference): Promise<KeyRecord>;
  /** Newest first. */
  list(filter: KeyFilter, paging?: Paging): List<KeyRecord>;
  /**
   * Changes what is given. What that takes away is gone for the next request in every process; what it grants is there
   * within 5 seconds. `models` narrows what the policy permits and never widens it.
   * @throws GatewayError `key_not_found`, `key_not_live` for a revoked key, or `invalid_argument`, as for a default class
   * below the floor.
   */
  update(change: UpdateKeyOptions): Promise<KeyRecord>;
  /**
   * Gives the key a new secret; the old one works for `overlap` more, at most 365 days (default 0). Ownership follows
   * the key's id.
   * @throws GatewayError `key_not_found`, or `key_not_live` for a key that is revoked or expired
   */
  rotate(reference: KeyReference & { readonly overlap?: Duration }): Promise<KeyWithSecret>;
  /** Holds for the next request in every process; a running stream finishes. @throws GatewayError `key_not_found` */
  revoke(reference: KeyReference): Promise<KeyRecord>;
  /**
   * Revokes every key of the user that is not revoked yet, expired ones too, so that no later expiry brings one back: all
   * at once, or none. Gives those it revoked, newest first.
   */
  revoke(reference: UserKeysReference): Promise<readonly KeyRecord[]>;
}

export function toKeyRecord({ version: _version, ...key }: ApiKey): KeyRecord {
  return {
    ...key,
    createdAt: toIso(key.createdAt),
    expiresAt: toIso(key.expiresAt),
    revokedAt: toIso(key.revokedAt),
    lastUsedAt: toIso(key.lastUsedAt),
  };
}
