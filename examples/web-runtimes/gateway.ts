import { createGateway } from "@tollgate/core";
import { simProvider } from "@tollgate/provider-sim";
import { memoryStore } from "@tollgate/store-memory";

/** A gateway with a store in memory and a provider that needs no account. */
export const gateway = createGateway({
  store: memoryStore(),
  providers: { sim: simProvider({ pace: 20 }) },
});
