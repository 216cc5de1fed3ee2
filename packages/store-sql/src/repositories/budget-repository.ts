import type { BudgetRepository, EvidenceLeaf, Reconciliation } from "@tollgate/core/store";
import type { Conditions } from "../conditions.ts";
import type { SqlDialect } from "../dialect.ts";
import { lists } from "../lists.ts";
import {
  budgetFromRow,
  budgetToRow,
  counterFromRow,
  driftFromRow,
  raiseFromRow,
  raiseToRow,
} from "../rows/budget-row.ts";
import { readRow } from "../rows/row-reader.ts";
import {
  all,
  countBudgetsChange,
  get,
  nextNumber,
  once,
  passOver,
  run,
  type Script,
  type ScriptDatabase,
} from "../script.ts";
import { administrationStatements } from "../statements/administration.ts";
import { reconciliationStatements } from "../statements/reconciliation.ts";
import { insertLeaf, type ReadPage } from "./reading.ts";

/** No raise lasts longer. */
const endOfTime = Number.MAX_SAFE_INTEGER;

export function createBudgetRepository(
  database: ScriptDatabase,
  { locked }: SqlDialect,
  conditions: Conditions,
  readPage: ReadPage,
): BudgetRepository {
  // A turn to change budgets: what a change finds of them, no other changes meanwhile.
  const turn = locked(administrationStatements.readState);
  /** A change moves the version and leaves its leaf; a change of no row leaves nothing. */
  const change = (leaf: EvidenceLeaf, apply: () => Script<number>): Promise<boolean> =>
    database.write(function* () {
      yield* get(turn, {});
      if ((yield* apply()) === 0) return false;
      yield* countBudgetsChange();
      yield* insertLeaf(leaf);
      return true;
    }, once);
  return {
    version: () => database.read(version),
    list: () => database.read(() => readAll(administrationStatements.budgets, budgetFromRow)),
    insert: (budget, leaf) =>
      change(leaf, function* () {
        const row = budgetToRow(budget, yield* nextNumber());
        if ((yield* run(administrationStatements.insertBudget, row)) === 0) return 0;
        yield* forgetRaises(budget.id);
        return 1;
      }),
    update: (budget, leaf) =>
      change(leaf, () => run(administrationStatements.updateBudget, budgetToRow(budget, 0))),
    remove: (id, leaf) =>
      change(leaf, function* () {
        if ((yield* run(administrationStatements.removeBudget, { id })) === 0) return 0;
        yield* forgetRaises(id);
        return 1;
      }),
    raises: () => database.read(() => readAll(administrationStatements.raises, raiseFromRow)),
    insertRaise: (raise, leaf, most) =>
      change(leaf, function* () {
        const row = raiseToRow(raise, yield* nextNumber());
        const left = readRow(yield* get(administrationStatements.raisesLeft, row)).integer(
          "raises",
        );
        if (left >= most) return 0;
        if ((yield* run(administrationStatements.insertRaise, row)) === 0) return 0;
        yield* run(administrationStatements.forgetRaises, row);
        return 1;
      }),
    removeRaise: ({ budgetId, id }, leaf) =>
      change(leaf, () => run(administrationStatements.removeRaise, { budget_id: budgetId, id })),
    reconcile: ({ limit }) => database.read(() => reconcile(limit)),
    counters: (query, paging) =>
      readPage(lists.counters, conditions.ofCounters(query), paging, counterFromRow),
  };
}

function* version(): Script<number> {
  return readRow(yield* get(administrationStatements.readState, {})).integer("budgets_version");
}

function* readAll<Record>(
  text: string,
  fromRow: (row: unknown) => Record,
): Script<readonly Record[]> {
  return (yield* all(text, {})).map(fromRow);
}

function* forgetRaises(budgetId: string): Script<void> {
  yield* run(administrationStatements.forgetRaises, { budget_id: budgetId, at: endOfTime });
}

function* reconcile(limit: number): Script<Reconciliation> {
  return {
    counters: readRow(yield* get(reconciliationStatements.counters, {})).integer("counters"),
    drift: (yield* passOver(reconciliationStatements.drift, { limit })).map(driftFromRow),
  };
}
