import fc from "fast-check";
import { afterAll, expect, inject, it, vi } from "vitest";
import { someCommands } from "../src/histories/command.ts";
import { historiesOn } from "../src/histories/same-history.ts";
import { freshMemory, freshPostgres, freshSqlite } from "../src/stores/fresh-stores.ts";

vi.setConfig({ testTimeout: 60_000 });

const postgres = freshPostgres(inject("postgresUrl"));
afterAll(() => postgres.close());

it("A3 the same commands have the same history in memory and on SQLite", async () => {
  await fc.assert(
    fc.asyncProperty(someCommands, async (commands) => {
      const [memory, sqlite] = await historiesOn([freshMemory, freshSqlite], commands);
      expect(sqlite).toEqual(memory);
    }),
    { numRuns: 60 },
  );
});

it("A3 the same commands have the same history in memory and on PostgreSQL", async () => {
  await fc.assert(
    fc.asyncProperty(someCommands, async (commands) => {
      const [memory, other] = await historiesOn([freshMemory, postgres], commands);
      expect(other).toEqual(memory);
    }),
    { numRuns: 20 },
  );
});
