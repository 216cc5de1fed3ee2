import type { Tenant } from "../contracts/step-query.ts";
import { requireId } from "../domain/opaque-id.ts";
import { GatewayError } from "../errors/gateway-error.ts";

export { requireId };

/** Given as `organizationId`, reads across all organizations: the one deliberate way to. */
export const everyOrganization: unique symbol = Symbol.for("tollgate.everyOrganization");

/** Whose records to read: one organization's, or everyone's. */
export interface OrganizationScope {
  readonly organizationId: string | typeof everyOrganization;
}

/**
 * The one place where a reader's tenant is settled. A missing organization is an error, never everyone.
 * @throws GatewayError `invalid_argument`
 */
export function tenantOf({ organizationId }: OrganizationScope): Tenant {
  return organizationId === everyOrganization ? null : requireId("organizationId", organizationId);
}

export function toIso(at: number): string;
export function toIso(at: number | null): string | null;
export function toIso(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}

/** An ISO 8601 time in milliseconds since the epoch. */
export function fromIso(name: string, time: string): number {
  const at =
    typeof time === "string" && /^\d{4}-\d{2}-\d{2}/.test(time) ? Date.parse(time) : Number.NaN;
  if (Number.isSafeInteger(at)) return at;
  throw new GatewayError("invalid_argument", `${name} must be an ISO 8601 time.`, { param: name });
}
