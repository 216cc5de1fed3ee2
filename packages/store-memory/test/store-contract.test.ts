import {
  describeSharedStoreContract,
  describeStoreContract,
} from "@tollgate/conformance/store-contract";
import { memoryStore } from "../src/index.ts";

describeStoreContract("memoryStore", { open: async () => ({ store: memoryStore() }) });

// Within one process, several users share the same memory store.
describeSharedStoreContract("memoryStore handed on", {
  open: async () => {
    const store = memoryStore();
    return { store, another: async () => store };
  },
});
