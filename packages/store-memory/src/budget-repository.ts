import type { BudgetRepository, EvidenceLeaf } from "@tollgate/core/store";
import type { State } from "./state.ts";

export function createBudgetRepository(state: State): BudgetRepository {
  const changed = (leaf: EvidenceLeaf): true => {
    state.budgetsVersion++;
    state.leaves.insert(leaf);
    return true;
  };
  return {
    version: async () => state.budgetsVersion,
    list: async () => [...state.budgets.values()],
    async insert(budget, leaf) {
      if (state.budgets.has(budget.id)) return false;
      state.budgets.set(budget.id, budget);
      return changed(leaf);
    },
    async update(budget, leaf) {
      if (!state.budgets.has(budget.id)) return false;
      state.budgets.set(budget.id, budget);
      return changed(leaf);
    },
    async remove(id, leaf) {
      return state.budgets.delete(id) && changed(leaf);
    },
    counters: async (query, paging) => state.counters.page(query, paging),
  };
}
