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

/** A day of UTC, or a time that says how far from UTC it is: without, it would be another one on another machine. */
const isoTime = /^(\d{4}-\d{2}-\d{2})(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:\d{2}))?$/;

/** An ISO 8601 time in milliseconds since the epoch. */
export function fromIso(name: string, time: string): number {
  const [, day = ""] = isoTime.exec(typeof time === "string" ? time : "") ?? [];
  const at = isDay(day) ? Date.parse(time) : Number.NaN;
  if (Number.isSafeInteger(at)) return at;
  throw new GatewayError(
    "invalid_argument",
    `${name} must be an ISO 8601 time: a day, or a time with Z or its offset from UTC.`,
    { param: name },
  );
}

/** What JavaScript reads of the 31st of February is a day of March. */
function isDay(day: string): boolean {
  const at = Date.parse(day);
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(day);
}
