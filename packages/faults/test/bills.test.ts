import fc from "fast-check";
import { expect, it, vi } from "vitest";
import { anyPlan } from "../src/bills/plan.ts";
import { playPlan } from "../src/bills/play-plan.ts";
import { emptyMemoryStores, emptySqliteStores } from "../src/stores/empty-stores.ts";

vi.setConfig({ testTimeout: 120_000 });

it.each([
  { ...emptyMemoryStores, numRuns: 300 },
  { ...emptySqliteStores, numRuns: 60 },
])(
  "B1 calls that end early exceed no hard budget and are charged at least their known bill, on $name (H3)",
  async ({ numRuns, ...stores }) => {
    await fc.assert(
      fc.asyncProperty(anyPlan, async (plan) => {
        expect(await playPlan(stores, plan)).toEqual([]);
      }),
      { numRuns },
    );
  },
);
