/** A customer of the gateway: its organization, its keys, and a word that only it knows. */
export interface Tenant {
  readonly organizationId: string;
  readonly secrets: readonly string[];
  /** Part of everything that the tenant sends. */
  readonly canary: string;
}

export const organizations = ["acme", "globex", "initech"] as const;

export const canaryOf = (organizationId: string): string => `canary-of-${organizationId}`;

/** The organizations whose canaries a text contains. */
export function canariesIn(text: string): readonly string[] {
  return organizations.filter((organizationId) => text.includes(canaryOf(organizationId)));
}
