import fc from "fast-check";
import { afterAll, expect, inject, it, vi } from "vitest";
import { anyActs, type LedgerAct, openLedger } from "../src/ledgers/random-ledger.ts";
import {
  type EmptyStores,
  emptyMemoryStores,
  emptyPostgresStores,
  emptySqliteStores,
} from "../src/stores/empty-stores.ts";

vi.setConfig({ testTimeout: 60_000 });

const postgres = emptyPostgresStores(inject("postgresUrl"));
afterAll(() => postgres.close());

it.each([
  ["memory", emptyMemoryStores, 40],
  ["SQLite", emptySqliteStores, 25],
  ["PostgreSQL", postgres, 6],
] as const)(
  "B2 budgets, Steps and billing records agree to the nanodollar on %s",
  async (_name, stores, numRuns) => {
    await fc.assert(
      fc.asyncProperty(anyActs, anyActs, (acts, later) => agree(stores, acts, later)),
      { numRuns },
    );
  },
);

async function agree(
  stores: EmptyStores,
  acts: readonly LedgerAct[],
  later: readonly LedgerAct[],
): Promise<void> {
  const { store, drop } = await stores.open();
  try {
    const ledger = await openLedger(store);
    for (const act of acts) await ledger.act(act);
    await ledger.recover();
    for (const act of later) await ledger.act(act);
    await ledger.recover();
    const steps = await ledger.steps();
    expect(steps.filter(({ outcome }) => outcome === "open")).toEqual([]);
    const bills = steps.flatMap(({ attempts }) => attempts);
    const spare = bills.filter(({ model }) => model.startsWith("spare/"));
    const settled = async (id: string) => {
      const { data } = await ledger.gateway.budgets.status({ id });
      expect(data.filter(({ held }) => held !== 0)).toEqual([]);
      return sumOf(data, (status) => status.settled);
    };
    expect(sumOf(steps, cost)).toBe(sumOf(bills, cost));
    expect(await settled("all-usd")).toBe(sumOf(bills, cost));
    expect(await settled("spare-usd")).toBe(sumOf(spare, cost));
    expect(await settled("key-tokens")).toBe(sumOf(steps, (step) => step.totalTokens));
    expect(await settled("requests")).toBe(steps.length);
    expect((await ledger.gateway.budgets.reconcile()).drift).toEqual([]);
    await ledger.gateway.close();
  } finally {
    await drop();
  }
}

function cost({ costNanoUsd }: { readonly costNanoUsd: number | null }): number {
  return costNanoUsd ?? Number.NaN;
}

function sumOf<Row>(rows: readonly Row[], of: (row: Row) => number): number {
  return rows.reduce((sum, row) => sum + of(row), 0);
}
