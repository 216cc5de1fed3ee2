import type { Tenant } from "../contracts/step-query.ts";
import type { Store } from "../contracts/store.ts";
import { everyOrganization, type OrganizationScope } from "../domain/organization.ts";
import { isoToMilliseconds } from "../kernel/iso-time.ts";
import { withStoreErrors } from "./method.ts";

export { everyOrganization, type OrganizationScope };

/** The only place that decides whose records are read. Schemas reject a missing organization before it gets here. */
export function tenantOf({ organizationId }: OrganizationScope): Tenant {
  return organizationId === everyOrganization ? null : organizationId;
}

const pageSize = 100;

/** The organization, or every one that ever had a key. */
export async function* organizationsOf(store: Store, tenant: Tenant): AsyncGenerator<string> {
  if (tenant !== null) return yield* [tenant];
  let after = "";
  for (;;) {
    const ids = await withStoreErrors(store.keys.organizations(after, pageSize));
    yield* ids;
    const last = ids.at(-1);
    if (last === undefined) return;
    after = last;
  }
}

export function toIso(at: number): string;
export function toIso(at: number | null): string | null;
export function toIso(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}

/** The time range of a filter, as the store compares it. */
export function rangeOf({ from, to }: { readonly from?: string; readonly to?: string }) {
  return {
    ...(from === undefined ? {} : { from: fromIso(from) }),
    ...(to === undefined ? {} : { to: fromIso(to) }),
  };
}

/** Milliseconds since the epoch, from a time that a schema has checked. */
export function fromIso(time: string): number {
  return isoToMilliseconds(time) ?? Number.NaN;
}
