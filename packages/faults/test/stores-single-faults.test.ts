import { afterAll, describe, expect, inject, it, vi } from "vitest";
import { tryEvery } from "../src/single-faults/every-fault.ts";
import { scenarios } from "../src/single-faults/scenarios.ts";
import { freshMemory, freshPostgres, freshSqlite } from "../src/stores/fresh-stores.ts";

vi.setConfig({ testTimeout: 60_000 });

const postgres = freshPostgres(inject("postgresUrl"));
afterAll(() => postgres.close());

/** In memory every fault is tried, on the others one of so many; a command tries them all. */
describe.each([
  [freshMemory, 1],
  [freshSqlite, 5],
  [postgres, 31],
])("F55 F56 one call of the store fails, or its client leaves, on $0.name", (stores, every) => {
  it.each(scenarios)("$name", async (scenario) => {
    const { faults, problems } = await tryEvery(stores, scenario, every);
    expect(problems).toEqual([]);
    expect(faults).toBeGreaterThan(0);
  });
});
