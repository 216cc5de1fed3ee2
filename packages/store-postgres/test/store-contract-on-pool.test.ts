import { describeStoreContract } from "@tollgate/conformance/store-contract";
import pg from "pg";
import { afterAll, inject, vi } from "vitest";
import { postgresStore } from "../src/index.ts";
import { sharedSchema } from "./databases.ts";

// The longest, a chain of responses deleted in every order, takes 2 seconds where nothing else runs.
vi.setConfig({ testTimeout: 20_000 });

const pool = new pg.Pool({ connectionString: inject("postgresUrl"), max: 8 });
afterAll(() => pool.end());
const emptySchema = sharedSchema();

describeStoreContract("postgresStore on an open pool, without named statements", {
  open: async () => ({
    store: postgresStore({ pool }, { schema: await emptySchema(), namedStatements: false }),
  }),
});
