import {
  describeSharedStoreContract,
  describeStoreContract,
} from "@tollgate/conformance/store-contract";
import { memoryStore } from "../src/index.ts";

describeStoreContract("memoryStore", { open: async () => ({ store: memoryStore() }) });

// In one process a memory store is shared by handing it on.
describeSharedStoreContract("memoryStore handed on", {
  open: async () => {
    const store = memoryStore();
    return { store, another: async () => store };
  },
});
