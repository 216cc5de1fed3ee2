import { postgresStore } from "@tollgate/store-postgres";
import { simProvider } from "@tollgate/testing";

export default {
  store: postgresStore({ url: process.env["DATABASE_URL"] ?? "" }, { schema: "tollgate_cli" }),
  providers: { sim: simProvider() },
};
