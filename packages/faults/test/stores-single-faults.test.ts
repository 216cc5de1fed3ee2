import { afterAll, describe, expect, inject, it, vi } from "vitest";
import { scenarios } from "../src/single-faults/scenarios.ts";
import { runEveryFault } from "../src/single-faults/trial.ts";
import {
  emptyMemoryStores,
  emptyPostgresStores,
  emptySqliteStores,
} from "../src/stores/empty-stores.ts";

vi.setConfig({ testTimeout: 60_000 });

const postgres = emptyPostgresStores(inject("postgresUrl"));
afterAll(() => postgres.close());

/** In memory every fault is tried, on the other stores one in several; `npm run faults -- calls` tries them all. */
describe.each([
  { name: emptyMemoryStores.name, stores: emptyMemoryStores, every: 1 },
  { name: emptySqliteStores.name, stores: emptySqliteStores, every: 5 },
  { name: postgres.name, stores: postgres, every: 31 },
])(
  "F55 F56 survives a failed call of the store, or a client that leaves during any call or read, on $name",
  ({ stores, every }) => {
    it.each(scenarios)("$name", async (scenario) => {
      const { faults, calls, problems } = await runEveryFault(stores, scenario, every);
      expect(problems).toEqual([]);
      expect(faults).toBeGreaterThan(0);
      const places = ["openStep", "settleStep", "provider.next", "body.read"];
      if (scenario.name === "a streamed answer")
        expect(places.filter((place) => !calls.includes(place))).toEqual([]);
    });
  },
);
