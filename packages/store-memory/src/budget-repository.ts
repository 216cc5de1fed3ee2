import type { BudgetRaise, BudgetRepository, EvidenceLeaf } from "@tollgate/core/store";
import { reconcile } from "./reconcile.ts";
import type { State } from "./state.ts";

export function createBudgetRepository(state: State): BudgetRepository {
  const recordChange = (leaf: EvidenceLeaf): true => {
    state.budgetsVersion++;
    state.leaves.insert(leaf);
    return true;
  };
  const keepRaises = (isKept: (raise: BudgetRaise) => boolean): void => {
    state.raises.splice(0, Number.POSITIVE_INFINITY, ...state.raises.filter(isKept));
  };
  return {
    version: async () => state.budgetsVersion,
    list: async () => [...state.budgets.values()],
    async insert(budget, leaf) {
      if (state.budgets.has(budget.id)) return false;
      state.budgets.set(budget.id, budget);
      keepRaises(({ budgetId }) => budgetId !== budget.id);
      return recordChange(leaf);
    },
    async update(budget, leaf) {
      if (!state.budgets.has(budget.id)) return false;
      state.budgets.set(budget.id, budget);
      return recordChange(leaf);
    },
    async remove(id, leaf) {
      if (!state.budgets.delete(id)) return false;
      keepRaises(({ budgetId }) => budgetId !== id);
      return recordChange(leaf);
    },
    raises: async () => [...state.raises],
    async insertRaise(raise, leaf, max) {
      const { budgetId, id, at } = raise;
      const others = state.raises.filter((other) => other.budgetId === budgetId);
      if (others.some((other) => other.id === id)) return false;
      if (others.filter(({ until }) => until > at).length >= max) return false;
      keepRaises((other) => other.budgetId !== budgetId || other.until > at);
      state.raises.push(raise);
      return recordChange(leaf);
    },
    async removeRaise({ budgetId, id }, leaf) {
      const before = state.raises.length;
      keepRaises((raise) => raise.budgetId !== budgetId || raise.id !== id);
      return state.raises.length < before && recordChange(leaf);
    },
    reconcile: async ({ limit }) => reconcile(state, limit),
    counters: async (query, paging) => state.counters.page(query, paging),
  };
}
