import type { ApiKey } from "../domain/api-key.ts";
import type { EvidenceLeaf } from "../domain/evidence-leaf.ts";
import type { StorePage, StorePaging } from "./repositories.ts";
import type { Tenant } from "./step-query.ts";

/** A key and its organization's salt. */
export interface KeyWithSalt {
  readonly key: ApiKey;
  readonly salt: Uint8Array;
}

/** A key found by its secret, and when that secret ends. Null means it lasts as long as the key. */
export interface KeyOfSecret extends KeyWithSalt {
  readonly secretEndsAt: number | null;
}

/** A key to write, with its leaf, and a salt to use if its organization has none yet. */
export interface KeyEntry {
  readonly key: ApiKey;
  readonly salt: Uint8Array;
  readonly leaf: EvidenceLeaf;
}

/** API keys. The store never sees a secret, only its SHA-256 digest of 32 bytes. */
export interface KeyRepository {
  /**
   * Writes a key and the digest of its secret, if it has one. Writes nothing if the organization already has a key with
   * this id. The same holds for a key without a secret if one with its user and label exists.
   */
  insert(entry: KeyEntry & { readonly digest: Uint8Array | null }): Promise<void>;
  /**
   * Returns the key without a secret for the entry's organization, user and label, live or not. Writes the entry's key if
   * none exists. Concurrent calls, even from several processes, get the same key.
   */
  ensure(entry: KeyEntry): Promise<KeyWithSalt>;
  /** The key, live or not, with a secret that has this SHA-256 digest and is still valid at `at`. */
  findByDigest(digest: Uint8Array, at: number): Promise<KeyOfSecret | null>;
  get(organizationId: Tenant, id: string): Promise<ApiKey | null>;
  /** Newest first. */
  list(query: KeyQuery, paging: StorePaging): Promise<StorePage<ApiKey>>;
  /** Ids of organizations that ever had a key: the first `limit` after `after`, in the order of their UTF-8 bytes. */
  organizations(after: string, limit: number): Promise<readonly string[]>;
  /**
   * Changes a key. Calls `decide` with the key, which nothing else changes until it is written. If `decide` returns null or
   * throws, the key stays unchanged. `decide` must not have side effects, because it may be called again. Returns the
   * changed key; null if it stays unchanged or doesn't exist.
   */
  change(name: KeyName, decide: (key: ApiKey) => KeyUpdate | null): Promise<ApiKey | null>;
  /**
   * Gives a key a new secret. Its other secrets end at `oldSecretsEnd` at the latest. Writes nothing and returns null if
   * the key doesn't exist, isn't live at `at`, or has no secret.
   */
  rotate(rotation: KeyRotation): Promise<ApiKey | null>;
  /** Records when keys were last used. Never moves a time back. */
  touch(
    uses: readonly {
      readonly organizationId: string;
      readonly keyId: string;
      readonly at: number;
    }[],
  ): Promise<void>;
}

/** Which keys to list. All given fields must match. */
export interface KeyQuery {
  readonly organizationId: Tenant;
  readonly userId?: string;
  readonly label?: string;
  /** Only keys that are live at a time, or only those that are not. */
  readonly live?: { readonly at: number; readonly is: boolean };
}

/** Identifies a key by its organization and id. */
export interface KeyName {
  readonly organizationId: string;
  readonly id: string;
}

/** The change of a key, and the leaf that attests it. */
export interface KeyUpdate {
  readonly patch: KeyPatch;
  readonly leaf: EvidenceLeaf;
}

/** The fields of a key that can change. Its id, its owner and its secret can't. */
export type KeyPatch = Partial<
  Pick<
    ApiKey,
    | "label"
    | "defaultDataClass"
    | "minimumDataClass"
    | "models"
    | "aliases"
    | "leadingSystem"
    | "expiresAt"
    | "revokedAt"
  >
>;

/** A key's next secret. */
export interface KeyRotation extends KeyName {
  readonly at: number;
  readonly digest: Uint8Array;
  readonly prefix: string;
  readonly oldSecretsEnd: number;
  /** Called with the key before anything is written, in the same transaction. If it throws, nothing is. */
  readonly check?: (key: ApiKey) => void;
  readonly leaf: EvidenceLeaf;
}
