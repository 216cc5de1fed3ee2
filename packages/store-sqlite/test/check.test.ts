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

it("changes nothing when it is asked to check, not even by making the file", async () => {
  const filename = temporaryFile();
  await expect(openStore(filename).migrate("check")).rejects.toThrow("database doesn't exist yet");
  expect(existsSync(filename)).toBe(false);
  new DatabaseSync(filename).close();
  await expect(openStore(filename).migrate("check")).rejects.toThrow("call migrate() first");
  await openStore(filename).migrate();
  await openStore(filename).migrate("check");
});

it("refuses the file of a newer release when it is asked to check (F45)", async () => {
  const filename = temporaryFile();
  await openStore(filename).migrate();
  const client = new DatabaseSync(filename);
  client.exec("UPDATE tollgate_schema SET version = 99");
  client.close();
  await expect(openStore(filename).migrate("check")).rejects.toThrow("newer release");
});
