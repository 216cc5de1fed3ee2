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
   * none exists. Concurrent calls, also from several processes, all get the same key.
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
   * Changes all selected keys or none. Calls `decide` with each key, which nothing else changes until everything is
   * written. If `decide` returns null, the key stays unchanged; if it throws, all changes are undone. `decide` must not
   * have side effects, because it may be called again. Returns the changed keys, newest first.
   */
  change(
    selection: KeySelection,
    decide: (key: ApiKey) => KeyUpdate | null,
  ): Promise<readonly ApiKey[]>;
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

/** One key of an organization, or all keys of one of its users, except revoked ones. */
export type KeySelection =
  | { readonly organizationId: string; readonly id: string }
  | { readonly organizationId: string; readonly userId: string };

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
export interface KeyRotation {
  readonly organizationId: string;
  readonly id: string;
  readonly at: number;
  readonly digest: Uint8Array;
  readonly prefix: string;
  readonly oldSecretsEnd: number;
  /** Called with the key before anything is written, in the same transaction. If it throws, nothing is. */
  readonly check?: (key: ApiKey) => void;
  readonly leaf: EvidenceLeaf;
}
