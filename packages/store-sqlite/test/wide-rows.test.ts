import { DatabaseSync } from "node:sqlite";
import { expect, it } from "vitest";
import { sqliteStore } from "../src/index.ts";

it("stores the wide rows of requests in the order they arrive", async () => {
  const client = new DatabaseSync(":memory:");
  await sqliteStore({ client }).migrate();
  for (const table of ["steps", "decisions", "transcript_parts", "responses", "claims", "leaves"])
    expect(() => client.prepare(`SELECT rowid FROM ${table}`), table).not.toThrow();
});
