import pg from "pg";
import { afterAll, inject } from "vitest";
import { describeEveryDoor } from "../../admin/test/doors.ts";
import { postgresStore } from "../src/index.ts";
import { sharedSchema } from "./databases.ts";

// Connections and statements are prepared once for all tests, which takes half as long.
const pool = new pg.Pool({ connectionString: inject("postgresUrl"), max: 8 });
afterAll(() => pool.end());
const emptySchema = sharedSchema();

describeEveryDoor("postgresStore", {
  open: async () => postgresStore({ pool }, { schema: await emptySchema() }),
});
