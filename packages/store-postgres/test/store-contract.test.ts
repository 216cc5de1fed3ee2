import { describeAdministration } from "@tollgate/conformance/administration-contract";
import {
  describeSharedStoreContract,
  describeStoreContract,
} from "@tollgate/conformance/store-contract";
import { inject, vi } from "vitest";
import { postgresStore } from "../src/index.ts";
import { sharedSchema } from "./databases.ts";

// The longest, a chain of responses deleted in every order, takes 2 seconds where nothing else runs.
vi.setConfig({ testTimeout: 20_000 });

const url = inject("postgresUrl");
const emptySchema = sharedSchema();

describeStoreContract("postgresStore by an address", {
  open: async () => ({ store: postgresStore({ url }, { schema: await emptySchema() }) }),
});

describeSharedStoreContract("postgresStore in one schema", {
  open: async () => {
    const schema = await emptySchema();
    const open = () => postgresStore({ url }, { schema });
    return { store: open(), another: async () => open() };
  },
});

describeAdministration("postgresStore", {
  open: async () => postgresStore({ url }, { schema: await emptySchema() }),
});
