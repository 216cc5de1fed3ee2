import {
  type BudgetCounter,
  type BudgetCounterKey,
  decodeCursor,
  encodeCursor,
  type StorePage,
  type StorePaging,
} from "@tollgate/core/store";

/** Where every budget stands. A counter begins with its first hold. */
export interface Counters {
  get(key: BudgetCounterKey): BudgetCounter | null;
  set(counter: BudgetCounter): void;
  page(query: CounterQuery, paging: StorePaging): StorePage<BudgetCounter>;
  /** Every counter. */
  all(): readonly BudgetCounter[];
}

interface CounterQuery {
  readonly budgetId: string;
  readonly subject?: string;
  readonly periodStart?: number;
}

export function createCounters(): Counters {
  const budgets = new Map<string, Map<string, BudgetCounter>>();

  return {
    get: (key) => budgets.get(key.budgetId)?.get(keyOf(key)) ?? null,
    set(counter) {
      const ofBudget = budgets.get(counter.budgetId) ?? new Map<string, BudgetCounter>();
      budgets.set(counter.budgetId, ofBudget.set(keyOf(counter), counter));
    },
    all: () => [...budgets.values()].flatMap((ofBudget) => [...ofBudget.values()]),
    page({ budgetId, subject, periodStart }, { cursor, limit }) {
      const after = cursor === null ? null : decodeCursor(listName, cursor);
      const rows = [...(budgets.get(budgetId)?.values() ?? [])]
        .filter((row) => subject === undefined || row.subject === subject)
        .filter((row) => periodStart === undefined || row.periodStart === periodStart)
        .map((row) => ({ row, place: { order: row.periodStart, tie: row.subject } }))
        .filter(({ place }) => after === null || comparePlaces(after, place) < 0)
        .sort((a, b) => comparePlaces(a.place, b.place));
      const shown = rows.slice(0, limit);
      const last = shown.at(-1);
      return {
        data: shown.map(({ row }) => row),
        nextCursor: last && rows.length > limit ? encodeCursor(listName, last.place) : null,
      };
    },
  };
}

const listName = "counters";

function keyOf({ subject, periodStart }: BudgetCounterKey): string {
  return `${periodStart}/${subject}`;
}

type CounterPlace = { readonly order: number; readonly tie: string };

/** Newest period first, then by subject. */
function comparePlaces(a: CounterPlace, b: CounterPlace): number {
  return b.order - a.order || (a.tie < b.tie ? -1 : a.tie > b.tie ? 1 : 0);
}
