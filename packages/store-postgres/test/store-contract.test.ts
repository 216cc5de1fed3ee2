import {
  describeSharedStoreContract,
  describeStoreContract,
} from "@tollgate/testing/store-contract";
import pg from "pg";
import { afterAll, inject, vi } from "vitest";
import { postgresStore } from "../src/index.ts";
import { freshSchema, freshStore } from "./databases.ts";

// The random histories make thousands of commits.
vi.setConfig({ testTimeout: 30_000 });

const pool = new pg.Pool({ connectionString: inject("postgresUrl"), max: 8 });
afterAll(() => pool.end());

describeStoreContract("postgresStore by an address", {
  open: async () => ({ store: freshStore() }),
});

describeStoreContract("postgresStore on an open pool, without named statements", {
  open: async () => ({
    store: postgresStore({ pool }, { schema: freshSchema(), namedStatements: false }),
  }),
});

describeSharedStoreContract("postgresStore in one schema", {
  open: async () => {
    const schema = freshSchema();
    const open = () => postgresStore({ url: inject("postgresUrl") }, { schema });
    return { store: open(), another: async () => open() };
  },
});
