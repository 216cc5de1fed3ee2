import {
  describeSharedStoreContract,
  describeStoreContract,
} from "@tollgate/conformance/store-contract";
import { sqliteStore } from "../src/index.ts";
import { openBetterSqlite } from "./better-sqlite.ts";
import { temporaryFile } from "./temporary-folder.ts";

describeStoreContract("sqliteStore on a file", {
  open: async () => ({ store: sqliteStore({ filename: temporaryFile() }) }),
});

describeStoreContract("sqliteStore on an open better-sqlite3 database", {
  open: async () => ({ store: sqliteStore({ client: await openBetterSqlite(temporaryFile()) }) }),
});

describeSharedStoreContract("sqliteStore on one file", {
  open: async () => {
    const filename = temporaryFile();
    return {
      store: sqliteStore({ filename }),
      another: async () => sqliteStore({ filename }),
    };
  },
});
