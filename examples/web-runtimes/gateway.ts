import { createGateway } from "@tollgate/core";
import { memoryStore } from "@tollgate/store-memory";
import { simProvider } from "@tollgate/testing";

/** A gateway in memory, whose provider needs no account. */
export const gateway = createGateway({
  store: memoryStore(),
  providers: { sim: simProvider({ pace: 20 }) },
});
