import type { Tenant } from "../contracts/repositories.ts";
import { GatewayError } from "../errors/gateway-error.ts";

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

/** An opaque id of the host application: 1 to 255 characters of well-formed text without control characters. */
export function requireId(name: string, id: unknown): string {
  if (
    typeof id === "string" &&
    id !== "" &&
    id.length <= 255 &&
    id.isWellFormed() &&
    !/\p{Cc}/u.test(id)
  )
    return id;
  throw new GatewayError(
    "invalid_argument",
    `${name} must be 1 to 255 characters without control characters.`,
    {
      param: name,
    },
  );
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
