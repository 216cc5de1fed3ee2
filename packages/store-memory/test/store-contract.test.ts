import { describeStoreContract } from "@tollgate/testing/store-contract";
import { memoryStore } from "../src/index.ts";

describeStoreContract("memoryStore", { open: async () => ({ store: memoryStore() }) });
