import type { Tenant } from "../contracts/step-query.ts";
import type { Store } from "../contracts/store.ts";

const pageSize = 100;

/** The organization, or each that ever had a key, one after the other. */
export async function* organizationsOf(store: Store, tenant: Tenant): AsyncGenerator<string> {
  if (tenant !== null) return yield* [tenant];
  let after = "";
  for (;;) {
    const ids = await store.keys.organizations(after, pageSize);
    yield* ids;
    const last = ids.at(-1);
    if (last === undefined) return;
    after = last;
  }
}
