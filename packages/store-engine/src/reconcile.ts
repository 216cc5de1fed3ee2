import {
  type BudgetCounter,
  type BudgetCounterKey,
  type CounterDrift,
  type Reconciliation,
  yieldToEventLoop,
} from "@tollgate/core/store";
import { compareBytes } from "./compare-bytes.ts";
import { isPace } from "./holds.ts";
import type { HoldRecord } from "./model.ts";

/** A ledger that is read in chunks while Steps run. `Types` are the types that name its places and its Steps. */
export interface Ledger<Types extends LedgerTypes> {
  /** Runs reads that all see the same moment. They may run again, and no other work of the process runs between them. */
  read<Result>(work: (reads: LedgerReads<Types>) => Result): Promise<Result>;
}

/** Where a reading stopped in each of its lists, and the name of a Step. */
export interface LedgerTypes {
  readonly steps: unknown;
  readonly corrections: unknown;
  readonly counters: unknown;
  readonly step: unknown;
}

/** Reads at one moment. `after` is where the last chunk ended, null at first. */
export interface LedgerReads<Types extends LedgerTypes> {
  /** Each Step with holds once, even a removed one, as it is when it is reached. Those that open later come last. */
  steps(
    after: Types["steps"] | null,
    limit: number,
  ): LedgerChunk<LedgerStep<Types["step"]>, Types["steps"]>;
  /** Each correction once. Those that are made later come last. */
  corrections(
    after: Types["corrections"] | null,
    limit: number,
  ): LedgerChunk<LedgerCorrection, Types["corrections"]>;
  /** Each counter once. One that is created later may be missing. */
  counters(
    after: Types["counters"] | null,
    limit: number,
  ): LedgerChunk<BudgetCounter, Types["counters"]>;
  /** A Step that was reached before, as it is now. */
  step(name: Types["step"]): LedgerStep<Types["step"]>;
  counter(key: BudgetCounterKey): BudgetCounter | null;
}

/** The next rows of a list, where they end, and whether the list ended there. A chunk may be empty before the end. */
export interface LedgerChunk<Row, Place> {
  readonly rows: readonly Row[];
  readonly end: Place | null;
  readonly isLast: boolean;
}

/** The holds of a Step. Once it is no longer open, they never change. */
export interface LedgerStep<Name> {
  readonly name: Name;
  readonly isOpen: boolean;
  readonly holds: readonly LedgerHold[];
}

type LedgerHold = Pick<HoldRecord, keyof BudgetCounterKey | "unit" | "amount" | "settled">;

/** The amounts that a correction added to the settled amounts of these holds. */
export interface LedgerCorrection {
  readonly delta: { readonly usd: number; readonly tokens: number };
  readonly holds: readonly LedgerHold[];
}

const stepsPerTurn = 250;
const correctionsPerTurn = 100;
const countersPerTurn = 1_000;

/**
 * Compares every counter with its ledger, in turns between which other work runs. A turn reads at most 250 Steps, 100
 * corrections and 1,000 counters, and the Steps in flight. The result is exact although Steps open, settle and are corrected
 * meanwhile: an ended Step changes only by corrections, and Steps in flight are read again in each turn that compares.
 * Such a turn has read everything up to its own moment. So each counter and its ledger are of one moment, but two
 * counters may be of different ones. A counter that is created meanwhile may be left out. Memory grows with the
 * counters and the Steps in flight, not with the ledger. Returns up to `limit` counters that differ.
 */
export async function reconcile<Types extends LedgerTypes>(
  ledger: Ledger<Types>,
  { limit }: { readonly limit: number },
): Promise<Reconciliation> {
  const balances = createBalances();
  const drift: CounterDrift[] = [];
  let counters = 0;
  let progress: Progress<Types> = { steps: null, corrections: null, counters: null, open: [] };
  let isListed = false;
  for (;;) {
    const missing: readonly CounterName[] | null = isListed
      ? balances.uncompared(countersPerTurn)
      : null;
    const turn: Turn<Types> = await ledger.read((reads) => readTurn(reads, progress, missing));
    progress = turn.progress;
    balances.add(turn);
    for (const { counter, key } of turn.counters) {
      if (counter !== null) counters++;
      const found = balances.compare(key, counter);
      if (found !== null) drift.push(found);
    }
    if (drift.length > 2 * limit) drift.sort(compareKeys).splice(limit);
    isListed ||= turn.isListed;
    if (isListed && turn.isCaughtUp && balances.uncompared(1).length === 0)
      return { counters, drift: drift.sort(compareKeys).slice(0, limit) };
    await yieldToEventLoop();
  }
}

/** Where the last turn ended, and the Steps that were open when they were last read. */
interface Progress<Types extends LedgerTypes> {
  readonly steps: Types["steps"] | null;
  readonly corrections: Types["corrections"] | null;
  readonly counters: Types["counters"] | null;
  readonly open: readonly Types["step"][];
}

/** The rows of a turn. It reads counters only if it is caught up: then the ledger is known as of the turn. */
interface Turn<Types extends LedgerTypes> {
  readonly progress: Progress<Types>;
  readonly steps: readonly LedgerStep<Types["step"]>[];
  readonly corrections: readonly LedgerCorrection[];
  readonly counters: readonly {
    readonly key: CounterName;
    readonly counter: BudgetCounter | null;
  }[];
  readonly isCaughtUp: boolean;
  /** Whether the list of counters ended. */
  readonly isListed: boolean;
}

type CounterName = Pick<BudgetCounter, keyof BudgetCounterKey | "unit">;

/** `missing` are the counters to look for once their list has ended, null before. */
function readTurn<Types extends LedgerTypes>(
  reads: LedgerReads<Types>,
  progress: Progress<Types>,
  missing: readonly CounterName[] | null,
): Turn<Types> {
  const reached = reads.steps(progress.steps, stepsPerTurn);
  const corrected = reads.corrections(progress.corrections, correctionsPerTurn);
  const isCaughtUp = reached.isLast && corrected.isLast;
  const again = isCaughtUp ? progress.open.map((name) => reads.step(name)) : [];
  const steps = [...again, ...reached.rows];
  const listed =
    isCaughtUp && missing === null ? reads.counters(progress.counters, countersPerTurn) : null;
  const counted = listed?.rows.filter(({ unit }) => !isPace(unit)) ?? [];
  const named = isCaughtUp ? (missing ?? []) : [];
  const open = steps.filter(({ isOpen }) => isOpen).map(({ name }) => name);
  return {
    progress: {
      steps: reached.end,
      corrections: corrected.end,
      counters: listed === null ? progress.counters : listed.end,
      open: isCaughtUp ? open : [...progress.open, ...open],
    },
    steps,
    corrections: corrected.rows,
    counters: [
      ...counted.map((counter) => ({ key: counter, counter })),
      ...named.map((key) => ({ key, counter: reads.counter(key) })),
    ],
    isCaughtUp,
    isListed: listed?.isLast ?? false,
  };
}

/** The sums of the ledger by counter. A pace follows the clock and has no ledger. */
interface Balances {
  /** Adds the rows of a turn. The holds of open Steps count until the next turn. */
  add(read: Pick<Turn<LedgerTypes>, "steps" | "corrections">): void;
  /** The difference between a counter and its ledger, null if they are equal. A missing counter is 0. */
  compare(key: CounterName, counter: BudgetCounter | null): CounterDrift | null;
  /** The counters with a ledger that were not compared yet, up to a number. */
  uncompared(limit: number): readonly CounterName[];
}

interface Balance {
  settled: number;
  held: number;
}

function createBalances(): Balances {
  const ended = new Map<string, Balance>();
  let running = new Map<string, Balance>();
  const compared = new Set<string>();
  const waiting = new Map<string, CounterName>();

  const balanceIn = (balances: Map<string, Balance>, hold: LedgerHold): Balance => {
    const name = nameOf(hold);
    const balance = balances.get(name) ?? { settled: 0, held: 0 };
    balances.set(name, balance);
    if (!compared.has(name)) waiting.set(name, hold);
    return balance;
  };
  return {
    add({ steps, corrections }) {
      running = new Map();
      for (const { isOpen, holds } of steps)
        for (const hold of holds) {
          if (isPace(hold.unit)) continue;
          const balance = balanceIn(isOpen ? running : ended, hold);
          if (hold.settled === null) balance.held += hold.amount;
          else balance.settled = capped(balance.settled + hold.settled);
        }
      for (const { delta, holds } of corrections)
        for (const hold of holds) {
          if (hold.unit !== "usd" && hold.unit !== "tokens") continue;
          const balance = balanceIn(ended, hold);
          balance.settled = capped(balance.settled + delta[hold.unit]);
        }
    },
    compare({ budgetId, subject, periodStart, unit }, counter) {
      const name = nameOf({ budgetId, subject, periodStart });
      compared.add(name);
      waiting.delete(name);
      const [past, now] = [ended.get(name) ?? zero, running.get(name) ?? zero];
      const ledger = { settled: capped(past.settled + now.settled), held: past.held + now.held };
      const { settled, held } = counter ?? zero;
      if (settled === ledger.settled && held === ledger.held) return null;
      return { budgetId, subject, periodStart, unit, settled, held, ledger };
    },
    uncompared(limit) {
      const names: CounterName[] = [];
      for (const name of waiting.values()) {
        if (names.length === limit) break;
        names.push(name);
      }
      return names;
    },
  };
}

const zero: Readonly<Balance> = { settled: 0, held: 0 };

/** The largest amount that a counter stores. */
function capped(settled: number): number {
  return Math.min(settled, Number.MAX_SAFE_INTEGER);
}

function nameOf({ budgetId, subject, periodStart }: BudgetCounterKey): string {
  return JSON.stringify([budgetId, subject, periodStart]);
}

/** By budget, subject and period. */
function compareKeys(a: BudgetCounterKey, b: BudgetCounterKey): number {
  return (
    compareBytes(a.budgetId, b.budgetId) ||
    compareBytes(a.subject, b.subject) ||
    a.periodStart - b.periodStart
  );
}
