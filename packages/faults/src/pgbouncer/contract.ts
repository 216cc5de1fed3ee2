/** The contract of stores, run by `npm run faults -- pgbouncer` against the pooler that `TOLLGATE_TEST_PG_URL` names. */
import { randomBytes } from "node:crypto";
import {
  describeSharedStoreContract,
  describeStoreContract,
} from "@tollgate/conformance/store-contract";
import { postgresStore } from "@tollgate/store-postgres";
import { vi } from "vitest";

vi.setConfig({ testTimeout: 60_000 });

const url = process.env["TOLLGATE_TEST_PG_URL"] ?? "";
/** The server and its data are removed when the command ends. */
const freshSchema = (): string => `test_${randomBytes(8).toString("hex")}`;
const openIn = (schema: string) => postgresStore({ url }, { schema, namedStatements: false });

describeStoreContract("postgresStore behind PgBouncer, without named statements", {
  open: async () => ({ store: openIn(freshSchema()) }),
});

describeSharedStoreContract("postgresStore behind PgBouncer, several on one schema", {
  open: async () => {
    const schema = freshSchema();
    return { store: openIn(schema), another: async () => openIn(schema) };
  },
});
