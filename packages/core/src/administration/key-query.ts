import type { KeyQuery } from "../contracts/key-repository.ts";
import { requireId } from "../domain/opaque-id.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { KeyFilter } from "./key-records.ts";
import { requireMembers } from "./require-members.ts";
import { tenantOf } from "./tenant.ts";

/** Which keys a filter asks the store for; a key is live at a time. */
export function keyQuery(filter: KeyFilter, at: number): KeyQuery {
  requireMembers(filter, ["organizationId", "userId", "label", "live"]);
  const { userId, label, live } = filter;
  if (live !== undefined && typeof live !== "boolean")
    throw new GatewayError("invalid_argument", "live must be true or false.", { param: "live" });
  return {
    organizationId: tenantOf(filter),
    ...(userId === undefined ? {} : { userId: requireId("userId", userId) }),
    ...(label === undefined ? {} : { label: requireId("label", label) }),
    ...(live === undefined ? {} : { live: { at, is: live } }),
  };
}
