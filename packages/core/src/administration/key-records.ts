import type { ApiKey } from "../domain/api-key.ts";
import type { Duration } from "../kernel/duration.ts";
import type { List, Paging } from "./list.ts";
import { type OrganizationScope, toIso } from "./tenant.ts";

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

/** One key: of an organization, or of whichever it belongs to. */
export interface KeyReference extends Acting, OrganizationScope {
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

export function toKeyRecord(key: ApiKey): KeyRecord {
  return {
    ...key,
    createdAt: toIso(key.createdAt),
    expiresAt: toIso(key.expiresAt),
    revokedAt: toIso(key.revokedAt),
    lastUsedAt: toIso(key.lastUsedAt),
  };
}
