import type { RaisedBudget } from "../budgets/budget-cache.ts";
import { type BudgetConfiguration, toBudget } from "../budgets/read-budget.ts";
import type { Budget } from "../domain/budget.ts";
import { decodeCursor, encodeCursor } from "../domain/cursor.ts";
import { selects } from "../domain/pattern.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { filters, read } from "../input/read.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import { checked } from "./arguments.ts";
import { budgetLeaf } from "./budget-leaf.ts";
import { createBudgetRaises } from "./budget-raises.ts";
import type { BudgetRecord, Budgets } from "./budget-records.ts";
import { budgetStatus } from "./budget-status.ts";
import { listOf } from "./list.ts";
import { budgetFilter, budgetReference, budgetRemoval, budgetWriting } from "./schemas.ts";
import { type OrganizationScope, tenantOf, toIso } from "./tenant.ts";

export function createBudgets(line: GatewayContext, ready: () => Promise<void>): Budgets {
  const { all, find, requireCreated } = budgetRecords(line, ready);

  return {
    create: checked(budgetWriting, async ({ actor, ...written }) => {
      const budget = requireBudget(line, written);
      const taken = (await all()).some(({ id }) => id === budget.id);
      await requireSameUnit(line, budget);
      const leaf = budgetLeaf(line, "budget.created", { budget, actor });
      if (taken || !(await line.store.budgets.insert(budget, leaf))) throw idTaken(budget.id);
      await line.budgets.reload();
      return { ...budget, origin: "created" };
    }),
    get: checked(budgetReference, async ({ id }) => toRecord(await find(id))),
    list: (filter = {}, paging) => listOf(pageReader(all, filter), toRecord, paging),
    update: checked(budgetWriting, async ({ actor, ...written }) => {
      const budget = requireBudget(line, written);
      requireSameCounters(budget, await requireCreated(budget.id));
      const leaf = budgetLeaf(line, "budget.updated", { budget, actor });
      if (!(await line.store.budgets.update(budget, leaf))) throw notFound(budget.id);
      await line.budgets.reload();
      return { ...budget, origin: "created" };
    }),
    remove: checked(budgetRemoval, async ({ id, actor }) => {
      const budget = await requireCreated(id);
      const leaf = budgetLeaf(line, "budget.removed", { budget, actor });
      if (!(await line.store.budgets.remove(id, leaf))) throw notFound(id);
      await line.budgets.reload();
    }),
    status: (query, paging) => budgetStatus(line, { find, query, paging }),
    ...createBudgetRaises(line, find),
    async reconcile() {
      await ready();
      const { counters, drift } = await line.store.budgets.reconcile({ limit: maxDrift });
      return {
        counters,
        drift: drift.map((one) => ({ ...one, periodStart: toIso(one.periodStart) })),
      };
    },
  };
}

/** A budget with its raises and where it comes from. */
type FoundBudget = BudgetRecord & RaisedBudget;

function toRecord({ raises: _raises, ...record }: FoundBudget): BudgetRecord {
  return record;
}

/** Ways to read budgets together with where they come from. */
function budgetRecords(line: GatewayContext, ready: () => Promise<void>) {
  async function all(): Promise<readonly FoundBudget[]> {
    await ready();
    const created = await line.store.budgets.list();
    const { budgets } = await line.budgets.reload();
    const createdIds = new Set(created.map(({ id }) => id));
    return budgets.map((budget) => ({
      ...budget,
      origin: createdIds.has(budget.id) ? "created" : "declared",
    }));
  }

  async function find(id: string): Promise<FoundBudget> {
    const budget = (await all()).find((candidate) => candidate.id === id);
    if (!budget) throw notFound(id);
    return budget;
  }

  async function requireCreated(id: string): Promise<FoundBudget> {
    const budget = await find(id);
    if (budget.origin === "created") return budget;
    throw new GatewayError(
      "invalid_argument",
      `The budget ${id} is declared in the configuration and changes there.`,
      { param: "id" },
    );
  }

  return { all, find, requireCreated };
}

const listName = "budgets";
const maxDrift = 1_000;

/** Reads pages of all budgets by id. There are few, so they are read whole and cut here. */
function pageReader(
  all: () => Promise<readonly FoundBudget[]>,
  filter: Partial<OrganizationScope>,
): Parameters<typeof listOf<FoundBudget, BudgetRecord>>[0] {
  return async ({ cursor, limit }) => {
    const { organizationId } = read(budgetFilter, filter, filters);
    const tenant = organizationId === undefined ? null : tenantOf({ organizationId });
    const after = cursor === null ? null : decodeCursor(listName, cursor).tie;
    const rows = (await all())
      .filter(({ scope }) => tenant === null || selects(scope.organization, tenant))
      .filter(({ id }) => after === null || id > after)
      .sort((a, b) => (a.id < b.id ? -1 : 1));
    const data = rows.slice(0, limit);
    const last = data.at(-1);
    return {
      data,
      nextCursor:
        last && rows.length > limit ? encodeCursor(listName, { order: 0, tie: last.id }) : null,
    };
  };
}

function requireSameCounters(budget: Budget, before: Budget): void {
  if (before.period === budget.period && before.unit === budget.unit) return;
  throw new GatewayError(
    "invalid_argument",
    "A budget keeps its period and unit: remove it and create another.",
    { param: "period" },
  );
}

/** Counters outlive their budget: one that counted dollars cannot go on in tokens. */
async function requireSameUnit(line: GatewayContext, { id, unit }: Budget): Promise<void> {
  const { data } = await line.store.budgets.counters({ budgetId: id }, { cursor: null, limit: 1 });
  const counted = data[0]?.unit ?? unit;
  if (counted === unit) return;
  throw new GatewayError(
    "invalid_argument",
    `A budget ${id} was counted in ${counted} before: choose another id.`,
    { param: "id" },
  );
}

function notFound(id: string): GatewayError {
  return new GatewayError("budget_not_found", `There is no budget ${id}.`);
}

function idTaken(id: string): GatewayError {
  return new GatewayError("invalid_argument", `The budget id ${id} is taken.`, { param: "id" });
}

function requireBudget(line: GatewayContext, written: BudgetConfiguration): Budget {
  const budget = toBudget(written);
  const unknown = [budget.scope.gateway ?? []]
    .flat()
    .find((gateway) => !line.providers.has(gateway));
  if (unknown === undefined) return budget;
  throw new GatewayError("invalid_argument", `Unknown gateway: ${unknown}.`, {
    param: "scope.gateway",
  });
}
