import {
  type BudgetCounter,
  type BudgetCounterKey,
  decodeCursor,
  encodeCursor,
  type Hold,
  type RefusedHold,
  type StorePage,
  type StorePaging,
} from "@tollgate/core/store";

/** Where every budget stands. A counter begins with its first hold. */
export interface Counters {
  draft(): CounterDraft;
  page(query: CounterQuery, paging: StorePaging): StorePage<BudgetCounter>;
  /** Every counter. */
  all(): readonly BudgetCounter[];
}

interface CounterQuery {
  readonly budgetId: string;
  readonly subject?: string;
  readonly periodStart?: number;
}

/** Changes of several counters that become real together or not at all. */
export interface CounterDraft {
  /** Takes all holds; returns the first that does not fit. */
  take(holds: readonly Hold[]): RefusedHold | null;
  /** Turns a hold into what was spent. */
  settle(hold: Hold, spent: number): void;
  /** Moves what is settled, never below 0. */
  correct(hold: Hold, delta: number): void;
  commit(): void;
}

export function createCounters(): Counters {
  const budgets = new Map<string, Map<string, BudgetCounter>>();

  const write = (counter: BudgetCounter): void => {
    const ofBudget = budgets.get(counter.budgetId) ?? new Map<string, BudgetCounter>();
    budgets.set(counter.budgetId, ofBudget.set(nameOf(counter), counter));
  };
  return {
    draft: () => createDraft((key) => budgets.get(key.budgetId)?.get(nameOf(key)) ?? null, write),
    all: () => [...budgets.values()].flatMap((ofBudget) => [...ofBudget.values()]),
    page({ budgetId, subject, periodStart }, { cursor, limit }) {
      const after = cursor === null ? null : decodeCursor(listName, cursor);
      const rows = [...(budgets.get(budgetId)?.values() ?? [])]
        .filter((row) => subject === undefined || row.subject === subject)
        .filter((row) => periodStart === undefined || row.periodStart === periodStart)
        .map((row) => ({ row, place: { order: row.periodStart, tie: row.subject } }))
        .filter(({ place }) => after === null || byPlace(after, place) < 0)
        .sort((a, b) => byPlace(a.place, b.place));
      const shown = rows.slice(0, limit);
      const last = shown.at(-1);
      return {
        data: shown.map(({ row }) => row),
        nextCursor: last && rows.length > limit ? encodeCursor(listName, last.place) : null,
      };
    },
  };
}

function createDraft(
  read: (key: BudgetCounterKey) => BudgetCounter | null,
  write: (counter: BudgetCounter) => void,
): CounterDraft {
  const changed = new Map<string, BudgetCounter>();
  const name = (key: BudgetCounterKey): string => JSON.stringify([key.budgetId, nameOf(key)]);

  const standing = (hold: Hold): BudgetCounter => {
    const { budgetId, subject, periodStart, unit } = hold;
    const fresh = { budgetId, subject, periodStart, unit, settled: 0, held: 0 };
    return changed.get(name(hold)) ?? read(hold) ?? fresh;
  };
  return {
    take(holds) {
      for (const hold of holds) {
        const counter = standing(hold);
        const held = counter.held + hold.amount;
        const left = Math.max(0, hold.limit - counter.settled - counter.held);
        if (hold.mode === "hard" && (hold.limit === 0 || hold.amount > left)) return { hold, left };
        changed.set(name(hold), { ...counter, held });
      }
      return null;
    },
    settle(hold, spent) {
      const counter = standing(hold);
      const settled = withinCounter(counter.settled + spent);
      changed.set(name(hold), { ...counter, settled, held: counter.held - hold.amount });
    },
    correct(hold, delta) {
      const counter = standing(hold);
      changed.set(name(hold), { ...counter, settled: withinCounter(counter.settled + delta) });
    },
    commit: () => changed.forEach(write),
  };
}

function withinCounter(settled: number): number {
  return Math.max(0, Math.min(settled, Number.MAX_SAFE_INTEGER));
}

const listName = "counters";

function nameOf({ subject, periodStart }: BudgetCounterKey): string {
  return `${periodStart}/${subject}`;
}

type Place = { readonly order: number; readonly tie: string };

/** Newest period first, then by subject. */
function byPlace(a: Place, b: Place): number {
  return b.order - a.order || (a.tie < b.tie ? -1 : a.tie > b.tie ? 1 : 0);
}
