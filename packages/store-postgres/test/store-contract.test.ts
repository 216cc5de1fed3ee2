import {
  describeSharedStoreContract,
  describeStoreContract,
} from "@tollgate/conformance/store-contract";
import pg from "pg";
import { afterAll, inject, vi } from "vitest";
import { postgresStore } from "../src/index.ts";
import { sharedSchema } from "./databases.ts";

// The longest, a chain of responses deleted in every order, takes 2 seconds where nothing else runs.
vi.setConfig({ testTimeout: 20_000 });

const url = inject("postgresUrl");
// Connections and statements are prepared once for all tests, which takes half as long.
const pool = new pg.Pool({ connectionString: url, max: 8 });
afterAll(() => pool.end());
const emptySchema = sharedSchema();

describeStoreContract("postgresStore on an open pool", {
  open: async () => ({ store: postgresStore({ pool }, { schema: await emptySchema() }) }),
});

describeSharedStoreContract("postgresStore in one schema", {
  open: async () => {
    const schema = await emptySchema();
    const open = () => postgresStore({ url }, { schema });
    return { store: open(), another: async () => open() };
  },
});
