import type { ApiKey } from "../domain/api-key.ts";
import type { EvidenceLeaf } from "../domain/evidence-leaf.ts";
import type { StorePage, StorePaging } from "./repositories.ts";
import type { Tenant } from "./step-query.ts";

/** A key and its organization's salt. */
export interface KeyWithSalt {
  readonly key: ApiKey;
  readonly salt: Uint8Array;
}

/** A key found by its secret, and when that secret ends; null for as long as the key. */
export interface KeyOfSecret extends KeyWithSalt {
  readonly secretEndsAt: number | null;
}

/** A key to write, with its leaf, and a salt for its organization unless it has one. */
export interface KeyEntry {
  readonly key: ApiKey;
  readonly salt: Uint8Array;
  readonly leaf: EvidenceLeaf;
}

/** API keys. Secrets come and go as SHA-256 digests of 32 bytes; the store never sees one. */
export interface KeyRepository {
  /**
   * Writes a key and its secret, if it has one. Writes nothing where the organization has the id already, or the key has
   * no secret and the organization has such a key of its user and label.
   */
  insert(entry: KeyEntry & { readonly digest: Uint8Array | null }): Promise<void>;
  /**
   * The key without a secret of the entry's organization, user and label: the one there is, live or not, or else the
   * entry's, written now. However many ask at once, in however many processes, there is one, and they all get it.
   */
  ensure(entry: KeyEntry): Promise<KeyWithSalt>;
  /** The key whose secret has this SHA-256 and has not ended at `at`, live or not. */
  findByDigest(digest: Uint8Array, at: number): Promise<KeyOfSecret | null>;
  get(organizationId: Tenant, id: string): Promise<ApiKey | null>;
  /** Newest first. */
  list(query: KeyQuery, paging: StorePaging): Promise<StorePage<ApiKey>>;
  /** Ids of organizations that ever had a key: the first `limit` behind `after`, in the order of their UTF-8 bytes. */
  organizations(after: string, limit: number): Promise<readonly string[]>;
  /**
   * Changes all selected keys or none. `decide` is asked about each as it stays until everything is written; for null it
   * is left as it is, and what `decide` throws undoes all. It only computes, since it may be asked again. Gives the keys
   * that changed, newest first.
   */
  change(
    selection: KeySelection,
    decide: (key: ApiKey) => KeyUpdate | null,
  ): Promise<readonly ApiKey[]>;
  /**
   * Gives a key a new secret; its others end at `oldSecretsEnd` unless they end before. Null, and nothing written, for
   * no such key, one that is not live at `at`, and one without a secret.
   */
  rotate(rotation: KeyRotation): Promise<ApiKey | null>;
  /** Notes that keys were used; never moves a time back. */
  touch(
    uses: readonly {
      readonly organizationId: string;
      readonly keyId: string;
      readonly at: number;
    }[],
  ): Promise<void>;
}

/** Which keys to list; every given field must match. */
export interface KeyQuery {
  readonly organizationId: Tenant;
  readonly userId?: string;
  readonly label?: string;
  /** Only keys that are live at a time, or only those that are not. */
  readonly live?: { readonly at: number; readonly is: boolean };
}

/** One key of an organization, or all of one of its users. */
export type KeySelection =
  | { readonly organizationId: string; readonly id: string }
  | { readonly organizationId: string; readonly userId: string };

/** What to change of a key, and the leaf that attests it. */
export interface KeyUpdate {
  readonly patch: KeyPatch;
  readonly leaf: EvidenceLeaf;
}

/** What may change about a key: its secret, its owner and its id never do. */
export type KeyPatch = Partial<
  Pick<
    ApiKey,
    "label" | "defaultDataClass" | "minimumDataClass" | "models" | "expiresAt" | "revokedAt"
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
  readonly leaf: EvidenceLeaf;
}
