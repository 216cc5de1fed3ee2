/** The roles of operators. Each includes the ones before it. */
export const adminRoles = ["viewer", "operator", "admin"] as const;

/** The rights of an operator. */
export type AdminRole = (typeof adminRoles)[number];

/** A token for the admin API. Its secret is kept only as a SHA-256 digest and never appears here. */
export interface AdminToken {
  readonly id: string;
  /** Who holds it. Recorded with the id as the actor of its changes. */
  readonly label: string;
  /** `tga_` and four characters of the secret, to tell tokens apart. */
  readonly prefix: string;
  readonly role: AdminRole;
  /** The organizations whose records it sees and changes; `all` for every one, now and later. */
  readonly organizations: readonly string[] | "all";
  /** The right to read transcripts, up to a data class; null for none. No role includes it. */
  readonly transcripts: { readonly upTo: string } | null;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly revokedAt: number | null;
  /** Up to 60 seconds late. */
  readonly lastUsedAt: number | null;
}
