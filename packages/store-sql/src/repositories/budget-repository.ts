import type { BudgetRepository, EvidenceLeaf, RateLimitRepository } from "@tollgate/core/store";
import { lists } from "../lists.ts";
import { budgetRows, counterFromRow, raiseRows, rateLimitRows } from "../rows/budget-row.ts";
import { readRow } from "../rows/row-reader.ts";
import { all, countBudgetsChange, get, nextNumber, once, run, type Script } from "../script.ts";
import { administrationStatements } from "../statements/administration.ts";
import { type Access, insertLeaf } from "./reading.ts";

/** The latest end of a raise. */
const endOfTime = Number.MAX_SAFE_INTEGER;

type ApplyChange = (leaf: EvidenceLeaf, apply: () => Script<number>) => Promise<boolean>;

/**
 * A change increments the version and writes its leaf; a change that affects no row writes nothing. Changes run one at
 * a time.
 */
function changesOf({ database, dialect }: Access): ApplyChange {
  const turn = dialect.locked(administrationStatements.readState);
  return (leaf, apply) =>
    database.write(function* () {
      yield* get(turn, {});
      if ((yield* apply()) === 0) return false;
      yield* countBudgetsChange();
      yield* insertLeaf(leaf);
      return true;
    }, once);
}

export function createRateLimitRepository(access: Access): RateLimitRepository {
  const { database } = access;
  const change = changesOf(access);
  return {
    list: () =>
      database.read(() => readAll(administrationStatements.rateLimits, rateLimitRows.fromRow)),
    insert: (rateLimit, leaf) =>
      change(leaf, function* () {
        if (yield* isTaken(rateLimit.id)) return 0;
        const row = { ...rateLimitRows.toRow(rateLimit), sequence: yield* nextNumber() };
        return yield* run(administrationStatements.insertRateLimit, row);
      }),
    update: (rateLimit, leaf, check) =>
      change(leaf, function* () {
        yield* checkRow(
          administrationStatements.rateLimit,
          rateLimit,
          rateLimitRows.fromRow,
          check,
        );
        return yield* run(administrationStatements.updateRateLimit, rateLimitRows.toRow(rateLimit));
      }),
    remove: (id, leaf, check) =>
      change(leaf, function* () {
        yield* checkRow(administrationStatements.rateLimit, { id }, rateLimitRows.fromRow, check);
        return yield* run(administrationStatements.removeRateLimit, { id });
      }),
  };
}

/** Shows a row that is about to change to its check. Changes run one at a time, so nothing else changes it in between. */
function* checkRow<Row>(
  statement: string,
  { id }: { readonly id: string },
  fromRow: (row: unknown) => Row,
  check: ((before: Row) => void) | undefined,
): Script<void> {
  if (check === undefined) return;
  const row = yield* get(statement, { id });
  if (row !== undefined) check(fromRow(row));
}

/** Whether a budget or a rate limit has this id. */
function* isTaken(id: string): Script<boolean> {
  return (yield* get(administrationStatements.holdsId, { id })) !== undefined;
}

export function createBudgetRepository(access: Access): Omit<BudgetRepository, "reconcile"> {
  const { database, conditions, readPage } = access;
  const change = changesOf(access);
  return {
    version: () => database.read(version),
    list: () => database.read(() => readAll(administrationStatements.budgets, budgetRows.fromRow)),
    insert: (budget, leaf) =>
      change(leaf, function* () {
        if (yield* isTaken(budget.id)) return 0;
        const row = { ...budgetRows.toRow(budget), sequence: yield* nextNumber() };
        yield* run(administrationStatements.insertBudget, row);
        yield* forgetRaises(budget.id);
        return 1;
      }),
    update: (budget, leaf, check) =>
      change(leaf, function* () {
        yield* checkRow(administrationStatements.budget, budget, budgetRows.fromRow, check);
        return yield* run(administrationStatements.updateBudget, budgetRows.toRow(budget));
      }),
    remove: (id, leaf, check) =>
      change(leaf, function* () {
        yield* checkRow(administrationStatements.budget, { id }, budgetRows.fromRow, check);
        if ((yield* run(administrationStatements.removeBudget, { id })) === 0) return 0;
        yield* forgetRaises(id);
        return 1;
      }),
    raises: () => database.read(() => readAll(administrationStatements.raises, raiseRows.fromRow)),
    insertRaise: (raise, leaf, most, check) =>
      change(leaf, function* () {
        const budget = { id: raise.budgetId };
        yield* checkRow(administrationStatements.budget, budget, budgetRows.fromRow, check);
        const row = { ...raiseRows.toRow(raise), sequence: yield* nextNumber() };
        const left = readRow(yield* get(administrationStatements.raisesLeft, row)).integer(
          "raises",
        );
        if (left >= most) return 0;
        if ((yield* run(administrationStatements.insertRaise, row)) === 0) return 0;
        yield* run(administrationStatements.forgetRaises, row);
        return 1;
      }),
    removeRaise: ({ budgetId, id }, leaf, check) =>
      change(leaf, function* () {
        yield* checkRow(
          administrationStatements.budget,
          { id: budgetId },
          budgetRows.fromRow,
          check,
        );
        return yield* run(administrationStatements.removeRaise, { budget_id: budgetId, id });
      }),
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
