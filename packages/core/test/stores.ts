import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Store } from "@tollgate/core/store";
import { memoryStore } from "@tollgate/store-memory";
import { sqliteStore } from "@tollgate/store-sqlite";
import { onTestFinished } from "vitest";

/** The stores on which a gateway must behave alike, by name. */
export const stores: readonly (readonly [name: string, open: () => Store])[] = [
  ["memoryStore", memoryStore],
  ["sqliteStore", openSqlite],
];

/** A store on a file of its own, which goes when the test ends. */
function openSqlite(): Store {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-core-"));
  const store = sqliteStore({ filename: join(folder, "tollgate.db") });
  onTestFinished(async () => {
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  });
  return store;
}
