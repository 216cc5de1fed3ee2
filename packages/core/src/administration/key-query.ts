import type { KeyQuery } from "../contracts/key-repository.ts";
import type { KeyFilter } from "./key-records.ts";
import { tenantOf } from "./tenant.ts";

/** Which keys a filter asks the store for; a key is live at a time. */
export function keyQuery(filter: KeyFilter, at: number): KeyQuery {
  const { live, userId, label } = filter;
  return {
    organizationId: tenantOf(filter),
    ...(userId === undefined ? {} : { userId }),
    ...(label === undefined ? {} : { label }),
    ...(live === undefined ? {} : { live: { at, is: live } }),
  };
}
