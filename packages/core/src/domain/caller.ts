import type { LeadingSystem } from "./api-key.ts";

/** Who something belongs to: the organization, the user and the API key. */
export interface Owner {
  readonly organizationId: string;
  readonly userId: string;
  readonly keyId: string;
}

/** The authenticated caller of a request. */
export interface Caller extends Owner {
  readonly keyLabel: string;
  /** The version of the key that was read. */
  readonly keyVersion: number;
  /** Where the request comes from: `api` over HTTP, or what the host application names. */
  readonly source: string;
  readonly defaultDataClass: string;
  readonly minimumDataClass: string;
  /** Lists of model patterns. In each list, at least one pattern must match. Without lists, there is no limit. */
  readonly allowlists: readonly (readonly string[])[];
  /** The aliases of its key; null for none. */
  readonly aliases: ReadonlyMap<string, string> | null;
  /** The place of leading system messages for its key; null for that of the gateway. */
  readonly leadingSystem: LeadingSystem | null;
  /** The organization's salt, under which its transcripts are hashed. */
  readonly salt: Uint8Array;
}
