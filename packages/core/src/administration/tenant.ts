import type { Tenant } from "../contracts/step-query.ts";
import { everyOrganization, type OrganizationScope } from "../domain/organization.ts";
import { isoToMilliseconds } from "../kernel/iso-time.ts";

export { everyOrganization, type OrganizationScope };

/** The one place where a reader's tenant is settled. A missing organization never gets this far. */
export function tenantOf({ organizationId }: OrganizationScope): Tenant {
  return organizationId === everyOrganization ? null : organizationId;
}

export function toIso(at: number): string;
export function toIso(at: number | null): string | null;
export function toIso(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}

/** A time that its schema let pass, in milliseconds since the epoch. */
export function fromIso(time: string): number {
  return isoToMilliseconds(time) ?? Number.NaN;
}
