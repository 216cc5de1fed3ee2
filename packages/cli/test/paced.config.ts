import { createGateway } from "@tollgate/core";
import { simProvider } from "@tollgate/provider-sim";
import { sqliteStore } from "@tollgate/store-sqlite";

export default createGateway({
  store: sqliteStore({ filename: process.env["DATABASE"] ?? "paced.db" }),
  providers: { sim: simProvider({ pace: Number(process.env["PACE"] ?? 0) }) },
});
