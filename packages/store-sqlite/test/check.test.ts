import { existsSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { expect, it, onTestFinished } from "vitest";
import { sqliteStore } from "../src/index.ts";
import { temporaryFile } from "./temporary-folder.ts";

function openStore(filename: string) {
  const store = sqliteStore({ filename });
  onTestFinished(() => store.close());
  return store;
}

it("changes nothing and creates no file in check mode", async () => {
  const filename = temporaryFile();
  await expect(openStore(filename).migrate("check")).rejects.toThrow(
    `the database doesn't exist yet at ${filename}; call migrate() first`,
  );
  expect(existsSync(filename)).toBe(false);
  new DatabaseSync(filename).close();
  await expect(openStore(filename).migrate("check")).rejects.toMatchObject({
    message: "SQLite store: the database has no current schema; call migrate() first",
    needsMigration: "SQLite store: the database has no current schema",
  });
  await openStore(filename).migrate();
  await openStore(filename).migrate("check");
});

it("rejects the file of a newer release in check mode (F45)", async () => {
  const filename = temporaryFile();
  await openStore(filename).migrate();
  const client = new DatabaseSync(filename);
  client.exec("UPDATE tollgate_schema SET version = 99");
  client.close();
  await expect(openStore(filename).migrate("check")).rejects.toThrow("newer release");
});
