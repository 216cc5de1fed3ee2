import { simProvider } from "@tollgate/provider-sim";
import { sqliteStore } from "@tollgate/store-sqlite";

const { KEK1 = "", KEK2, CURRENT = "k1" } = process.env;

/** A gateway of the platform and a customer-owned one, with the keys of the environment. */
export default {
  store: sqliteStore({ filename: "connections.db" }),
  providers: {
    sim: simProvider(),
    own: { ...simProvider(), connection: "customer" },
  },
  secrets: { current: CURRENT, keys: { k1: KEK1, ...(KEK2 === undefined ? {} : { k2: KEK2 }) } },
};
