import { createGateway } from "@tollgate/core";
import { sqliteStore } from "@tollgate/store-sqlite";
import { simProvider } from "@tollgate/testing";

export default createGateway({
  store: sqliteStore({ filename: "paced.db" }),
  providers: { sim: simProvider({ pace: Number(process.env["PACE"] ?? 0) }) },
});
