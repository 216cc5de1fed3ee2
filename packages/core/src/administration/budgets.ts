import { periodEnd, periodStart } from "../budgets/period.ts";
import { type BudgetConfiguration, readBudget } from "../budgets/read-budget.ts";
import type { Budget, BudgetCounter } from "../domain/budget.ts";
import type { EvidenceLeaf, LeafKind } from "../domain/evidence-leaf.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { createLeaf } from "../evidence/leaves.ts";
import type { Line } from "../pipeline/line.ts";
import type { Acting } from "./key-records.ts";
import { type List, listOf, type Paging } from "./list.ts";
import { requireId, toIso } from "./tenant.ts";

/** A budget and where it comes from. Its limit is in nanodollars, tokens or requests. */
export interface BudgetRecord extends Budget {
  readonly origin: "declared" | "created";
}

/** Where one counter of a budget stands in one period. */
export interface BudgetStatus {
  readonly budgetId: string;
  /** What `each` counts separately: a key's or organization's id, or `[organization, user]` as JSON; else empty. */
  readonly subject: string;
  readonly unit: Budget["unit"];
  readonly limit: number;
  readonly settled: number;
  readonly held: number;
  /** What is left; below 0 when a provider used more than was held. */
  readonly remaining: number;
  readonly periodStart: string;
  /** Null for a period without end. */
  readonly resetsAt: string | null;
}

/** Budgets, declared in the configuration or created at run time. */
export interface Budgets {
  /** Takes effect for the next request in every process. @throws GatewayError `invalid_argument` */
  create(budget: BudgetConfiguration & Acting): Promise<BudgetRecord>;
  /** @throws GatewayError `budget_not_found` */
  get(reference: { readonly id: string }): Promise<BudgetRecord>;
  list(): Promise<{ readonly data: readonly BudgetRecord[] }>;
  /** Replaces scope, limit and mode; what is settled and held stays. A declared budget changes in the configuration. */
  update(budget: BudgetConfiguration & Acting): Promise<BudgetRecord>;
  /** Stops a created budget; its counters stay as history. */
  remove(reference: { readonly id: string } & Acting): Promise<void>;
  /** The counters of the current period, one per subject. @throws GatewayError `budget_not_found` */
  status(
    reference: { readonly id: string; readonly subject?: string },
    paging?: Paging,
  ): List<BudgetStatus>;
}

export function createBudgets(line: Line, ready: () => Promise<void>): Budgets {
  const { store, clock, ids } = line;

  async function all(): Promise<readonly BudgetRecord[]> {
    await ready();
    const created = await store.budgets.list();
    const { budgets } = await line.budgets.reload();
    const createdIds = new Set(created.map(({ id }) => id));
    return budgets.map((budget) => ({
      ...budget,
      origin: createdIds.has(budget.id) ? "created" : "declared",
    }));
  }

  async function find(id: string): Promise<BudgetRecord> {
    const budget = (await all()).find((candidate) => candidate.id === id);
    if (!budget) throw new GatewayError("budget_not_found", `There is no budget ${id}.`);
    return budget;
  }

  async function requireCreated(id: string): Promise<BudgetRecord> {
    const budget = await find(id);
    if (budget.origin === "created") return budget;
    throw new GatewayError(
      "invalid_argument",
      `The budget ${id} is declared in the configuration and changes there.`,
      { param: "id" },
    );
  }

  function leafOf(kind: LeafKind, budget: Budget, actor: string | undefined): EvidenceLeaf {
    const { organization } = budget.scope;
    // A budget of one organization is in that organization's log; any other in the log of no organization.
    const organizationId = typeof organization === "string" ? organization : "";
    const { scope, ...facts } = budget;
    return createLeaf(
      { id: ids.uuid(), organizationId, kind, at: clock.now() },
      {
        actor: actor === undefined ? null : requireId("actor", actor),
        budget: { ...facts, scope: JSON.parse(JSON.stringify(scope)) },
      },
    );
  }

  return {
    async create({ actor, ...written }) {
      const budget = requireBudget(line, written);
      const taken = (await all()).some(({ id }) => id === budget.id);
      if (taken || !(await store.budgets.insert(budget, leafOf("budget.created", budget, actor)))) {
        throw new GatewayError("invalid_argument", `The budget id ${budget.id} is taken.`, {
          param: "id",
        });
      }
      await line.budgets.reload();
      return { ...budget, origin: "created" };
    },
    get: ({ id }) => find(id),
    list: async () => ({ data: await all() }),
    async update({ actor, ...written }) {
      const budget = requireBudget(line, written);
      const before = await requireCreated(budget.id);
      if (before.period !== budget.period || before.unit !== budget.unit) {
        throw new GatewayError(
          "invalid_argument",
          "A budget keeps its period and unit: remove it and create another.",
          { param: "period" },
        );
      }
      await store.budgets.update(budget, leafOf("budget.updated", budget, actor));
      await line.budgets.reload();
      return { ...budget, origin: "created" };
    },
    async remove({ id, actor }) {
      const budget = await requireCreated(id);
      const { origin: _origin, ...facts } = budget;
      await store.budgets.remove(id, leafOf("budget.removed", facts, actor));
      await line.budgets.reload();
    },
    status: ({ id, subject }, paging) => {
      const budget = find(id);
      budget.catch(() => {});
      return statusList(line, { budget, subject, paging });
    },
  };
}

function statusList(
  line: Line,
  {
    budget,
    subject,
    paging,
  }: {
    readonly budget: Promise<Budget>;
    readonly subject: string | undefined;
    readonly paging: Paging | undefined;
  },
): List<BudgetStatus> {
  return listOf(
    async (storePaging) => {
      const { id, period, limit } = await budget;
      const start = periodStart(period, line.clock.now());
      const query = {
        budgetId: id,
        periodStart: start,
        ...(subject === undefined ? {} : { subject }),
      };
      const page = await line.store.budgets.counters(query, storePaging);
      return {
        ...page,
        data: page.data.map((counter) =>
          statusOf(counter, { limit, resetsAt: periodEnd(period, start) }),
        ),
      };
    },
    (status) => status,
    paging,
  );
}

function statusOf(
  { budgetId, subject, unit, settled, held, periodStart: start }: BudgetCounter,
  { limit, resetsAt }: { readonly limit: number; readonly resetsAt: number | null },
): BudgetStatus {
  return {
    budgetId,
    subject,
    unit,
    limit,
    settled,
    held,
    remaining: limit - settled - held,
    periodStart: toIso(start),
    resetsAt: toIso(resetsAt),
  };
}

function requireBudget(line: Line, written: BudgetConfiguration): Budget {
  const { budget, problems } = readBudget(written);
  if (budget === null) throw new GatewayError("invalid_argument", problems.join(" "));
  const unknown = [budget.scope.gateway ?? []]
    .flat()
    .find((gateway) => !line.providers.has(gateway));
  if (unknown === undefined) return budget;
  throw new GatewayError("invalid_argument", `The gateway ${unknown} does not exist.`, {
    param: "scope.gateway",
  });
}
