import { simProvider } from "@tollgate/provider-sim";
import { postgresStore } from "@tollgate/store-postgres";

export default {
  store: postgresStore({ url: process.env["DATABASE_URL"] ?? "" }, { schema: "tollgate_cli" }),
  providers: { sim: simProvider() },
};
