import {
  describeSharedStoreContract,
  describeStoreContract,
} from "@tollgate/conformance/store-contract";
import { sqliteStore } from "../src/index.ts";
import { openBetterSqlite } from "./better-sqlite.ts";
import { migratedFiles } from "./temporary-folder.ts";

const migratedFile = migratedFiles();

describeStoreContract("sqliteStore on a file", {
  open: async () => ({ store: sqliteStore({ filename: migratedFile() }) }),
});

describeStoreContract("sqliteStore on an open better-sqlite3 database", {
  open: async () => ({ store: sqliteStore({ client: await openBetterSqlite(migratedFile()) }) }),
});

describeSharedStoreContract("sqliteStore on one file", {
  open: async () => {
    const filename = migratedFile();
    return {
      store: sqliteStore({ filename }),
      another: async () => sqliteStore({ filename }),
    };
  },
});
