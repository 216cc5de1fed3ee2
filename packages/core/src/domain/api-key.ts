import type { ModelAliases } from "./model-id.ts";

/** The places of the system and developer messages at the start of a conversation: in it, or as instructions of the Step. */
export const leadingSystems = ["history", "apart"] as const;

/** One of these places. */
export type LeadingSystem = (typeof leadingSystems)[number];

/** An API key's record. Its secret is kept only as a SHA-256 digest and never appears here. */
export interface ApiKey {
  readonly id: string;
  readonly organizationId: string;
  readonly userId: string;
  readonly label: string;
  /** `tg_` and at most four characters of the secret, to tell keys apart; empty for a key without a secret. */
  readonly prefix: string;
  readonly defaultDataClass: string;
  /** The least sensitive class that a request with this key is treated as. */
  readonly minimumDataClass: string;
  /** Model patterns the key is limited to; null for no limit. */
  readonly models: readonly string[] | null;
  /** Plain names for models, which come before those of the gateway; null for none. */
  readonly aliases: ModelAliases | null;
  /** The place of the system messages at the start of its conversations; null for that of the gateway. */
  readonly leadingSystem: LeadingSystem | null;
  /** Milliseconds since the epoch, like all times in records. Null means never. */
  readonly createdAt: number;
  readonly expiresAt: number | null;
  readonly revokedAt: number | null;
  /** Up to 60 seconds late. */
  readonly lastUsedAt: number | null;
  /** Counts changes of the key and of its secrets, from 0. A cached key is valid for one version. */
  readonly version: number;
}

/** Whether a key may be used at a time. */
export function keyIsLive(key: Pick<ApiKey, "expiresAt" | "revokedAt">, at: number): boolean {
  return (
    (key.revokedAt === null || at < key.revokedAt) && (key.expiresAt === null || at < key.expiresAt)
  );
}
