import type { BudgetCounter } from "@tollgate/core/store";
import { expect, it } from "vitest";
import { type Ledger, type LedgerChunk, type LedgerStep, reconcile } from "../src/index.ts";

interface NumberedLedger {
  readonly steps: number;
  readonly corrections: number;
  readonly counters: number;
  readonly step: number;
}

type Correction = { readonly usd: number; readonly step: number };

/** A ledger of Steps that each hold or have settled 1 on a counter of their own subject. */
function createLedger() {
  const steps: { isOpen: boolean; readonly subject: string }[] = [];
  const counters = new Map<string, BudgetCounter>();
  const corrections: Correction[] = [];
  /** The rows that each turn read, and what happens before a turn. */
  const turns: number[] = [];
  const before: (() => void)[] = [];

  const keyOf = (subject: string) => ({ budgetId: "budget", subject, periodStart: 0 });
  const move = (subject: string, { settled = 0, held = 0 }): void => {
    const counter = counters.get(subject);
    counters.set(subject, {
      ...keyOf(subject),
      unit: "usd",
      settled: (counter?.settled ?? 0) + settled,
      held: (counter?.held ?? 0) + held,
    });
  };
  const holdsOf = ({ isOpen, subject }: { isOpen: boolean; subject: string }) => {
    const settled = isOpen ? null : 1;
    return [{ ...keyOf(subject), unit: "usd" as const, amount: 1, settled }];
  };
  const step = (name: number): LedgerStep<number> => {
    const row = steps[name];
    if (row === undefined) return expect.fail();
    return { name, isOpen: row.isOpen, holds: holdsOf(row) };
  };
  const ledger: Ledger<NumberedLedger> = {
    async read(work) {
      before.shift()?.();
      let rows = 0;
      const chunk = <Row>(all: readonly Row[], after: number | null, limit: number) => {
        const found = all.slice(after ?? 0, (after ?? 0) + limit);
        rows += found.length;
        const end: LedgerChunk<Row, number> = {
          rows: found,
          end: (after ?? 0) + found.length,
          isLast: found.length < limit,
        };
        return end;
      };
      const counted = <Row>(row: Row): Row => {
        rows++;
        return row;
      };
      const result = work({
        steps: (after, limit) =>
          chunk(
            steps.map((_, name) => step(name)),
            after,
            limit,
          ),
        corrections: (after, limit) =>
          chunk(
            corrections.map(({ usd, step: name }) => ({
              delta: { usd, tokens: 0 },
              holds: step(name).holds,
            })),
            after,
            limit,
          ),
        counters: (after, limit) => chunk([...counters.values()], after, limit),
        step: (name) => counted(step(name)),
        counter: ({ subject }) => counted(counters.get(subject) ?? null),
      });
      turns.push(rows);
      return result;
    },
  };
  return {
    ...{ ledger, counters, turns, before },
    open(subject: string): number {
      move(subject, { held: 1 });
      return steps.push({ isOpen: true, subject }) - 1;
    },
    settle(name: number): void {
      const row = steps[name];
      if (row === undefined) return;
      row.isOpen = false;
      move(row.subject, { settled: 1, held: -1 });
    },
    correct(name: number, usd: number): void {
      corrections.push({ step: name, usd });
      move(steps[name]?.subject ?? "", { settled: usd });
    },
  };
}

it("reads at most 250 Steps, 100 corrections and 1,000 counters in a turn", async () => {
  const { ledger, turns, open, settle, correct } = createLedger();
  for (let at = 0; at < 2_600; at++) settle(open(`${at}`));
  for (let at = 0; at < 250; at++) correct(at, 3);
  expect(await reconcile(ledger, { limit: 9 })).toEqual({ counters: 2_600, drift: [] });
  // Ten full chunks of Steps, then counters with the rest.
  expect(turns).toEqual([
    350,
    350,
    300,
    ...Array.from({ length: 7 }, () => 250),
    1_100,
    1_000,
    600,
  ]);
});

it("counts Steps that open, settle and are corrected between turns once", async () => {
  const { ledger, before, open, settle, correct } = createLedger();
  const first = open("shared");
  for (let at = 0; at < 600; at++) settle(open(`${at % 5}`));
  before.push(
    () => {},
    () => {
      settle(first);
      settle(open("shared"));
      correct(first, 20);
    },
    () => {
      open("shared");
      open("new");
      correct(1, 5);
    },
  );
  expect((await reconcile(ledger, { limit: 9 })).drift).toEqual([]);
});

it("finds exactly the damage: a changed, a missing and an unknown counter", async () => {
  const { ledger, counters, before, open, settle } = createLedger();
  for (let at = 0; at < 300; at++) settle(open(`${at % 2}`));
  const running = open("lost while open");
  const unknown = { budgetId: "a", subject: "", periodStart: 0, unit: "usd" } as const;
  counters.set("unknown", { ...unknown, settled: 4, held: 0 });
  const changed = counters.get("0");
  if (changed) counters.set("0", { ...changed, held: 9 });
  counters.delete("1");
  counters.delete("lost while open");
  before.push(
    () => {},
    () => settle(open("0")),
  );
  const lost = { budgetId: "budget", periodStart: 0, unit: "usd", settled: 0, held: 0 };
  expect(await reconcile(ledger, { limit: 9 })).toEqual({
    counters: 2,
    drift: [
      { ...unknown, settled: 4, held: 0, ledger: { settled: 0, held: 0 } },
      { ...lost, subject: "0", settled: 151, held: 9, ledger: { settled: 151, held: 0 } },
      { ...lost, subject: "1", ledger: { settled: 150, held: 0 } },
      { ...lost, subject: "lost while open", ledger: { settled: 0, held: 1 } },
    ],
  });
  expect((await reconcile(ledger, { limit: 2 })).drift).toHaveLength(2);
  expect(running).toBe(300);
});
