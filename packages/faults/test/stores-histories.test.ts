import fc from "fast-check";
import { afterAll, expect, inject, it, vi } from "vitest";
import { someCommands } from "../src/histories/command.ts";
import { playOnEach } from "../src/histories/play.ts";
import {
  emptyMemoryStores,
  emptyPostgresStores,
  emptySqliteStores,
} from "../src/stores/empty-stores.ts";

vi.setConfig({ testTimeout: 60_000 });

const postgres = emptyPostgresStores(inject("postgresUrl"));
afterAll(() => postgres.close());

it("A3 the same commands produce the same history in memory and on SQLite", async () => {
  await fc.assert(
    fc.asyncProperty(someCommands, async (commands) => {
      const [memory, sqlite] = await playOnEach([emptyMemoryStores, emptySqliteStores], commands);
      expect(sqlite).toEqual(memory);
    }),
    { numRuns: 60 },
  );
});

it("A3 the same commands produce the same history in memory and on PostgreSQL", async () => {
  await fc.assert(
    fc.asyncProperty(someCommands, async (commands) => {
      const [memory, other] = await playOnEach([emptyMemoryStores, postgres], commands);
      expect(other).toEqual(memory);
    }),
    { numRuns: 20 },
  );
});
