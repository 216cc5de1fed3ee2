import type { RaisedBudget } from "../budgets/budget-cache.ts";
import { limitInForce } from "../budgets/limit-in-force.ts";
import { periodEnd, periodStart } from "../budgets/period.ts";
import {
  type BudgetConfiguration,
  type BudgetLimit,
  toAmount,
  toBudget,
} from "../budgets/read-budget.ts";
import type { Budget, BudgetCounter, BudgetRaise, CounterDrift } from "../domain/budget.ts";
import { invalidArgument } from "../errors/gateway-error.ts";
import { read } from "../input/read.ts";
import type { Json } from "../kernel/stable-json.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import { createDefinedLimits, matching } from "./defined-limits.ts";
import { type IfMatch, requireMatch } from "./etag.ts";
import { asReplayed, type Idempotent, idOfCreation, requireSame } from "./idempotency.ts";
import type { WithActor } from "./keys.ts";
import { type List, listOf, type Paging } from "./list.ts";
import { method, withStoreErrors } from "./method.ts";
import {
  budgetCreation,
  budgetRaising,
  budgetReference,
  budgetRemoval,
  budgetStatusQuery,
  budgetWriting,
  raiseCancellation,
} from "./schemas.ts";
import { fromIso, type OrganizationScope, toIso } from "./tenant.ts";

/** A budget and where it was defined. Its limit is in nanodollars, tokens or requests. */
export interface BudgetRecord extends Budget {
  readonly origin: "declared" | "created";
}

/** A temporary raise of a budget's limit, in the budget's unit. */
export interface BudgetRaiseRecord {
  readonly id: string;
  readonly budgetId: string;
  readonly unit: Budget["unit"];
  /** Nanodollars, tokens or requests. */
  readonly amount: number;
  /** ISO 8601. The raise applies from `raisedAt` until `until`. */
  readonly raisedAt: string;
  readonly until: string;
  readonly actor: string | null;
}

/** One counter of a budget in one period. */
export interface BudgetStatus {
  readonly budgetId: string;
  /** The value of `each`: a key's or organization's id, or `[organization, user]` as JSON. Empty without `each`. */
  readonly subject: string;
  readonly unit: Budget["unit"];
  /** The limit now, raises included. */
  readonly limit: number;
  readonly settled: number;
  readonly held: number;
  /** The limit minus settled and held. Below 0 if a provider used more than was held, or the limit was lowered. */
  readonly remaining: number;
  readonly periodStart: string;
  /** Null if the period never ends. */
  readonly resetsAt: string | null;
}

/** Selects counters of a budget. */
export interface BudgetStatusQuery {
  readonly id: string;
  /** One value of `each`, as in `BudgetStatus`. Default: all. */
  readonly subject?: string;
  /** ISO 8601: any time within the period. Default: now. */
  readonly at?: string;
}

/** Whether the counters of an earlier budget or rate limit with the same id may continue. */
export interface UnusedId {
  /** If true, an id that counted before is rejected: its counters may be those of others. Default: false. */
  readonly unused?: boolean;
}

/** Budgets, both those declared in the configuration and those created at run time. */
export interface Budgets {
  /**
   * Applies to the next request in every process. Creating an equal budget again changes nothing and returns it.
   * @throws GatewayError `invalid_argument`, or `budget_exists` if the id is taken
   */
  create(budget: BudgetConfiguration & UnusedId & WithActor): Promise<BudgetRecord>;
  /** @throws GatewayError `budget_not_found` */
  get(reference: { readonly id: string }): Promise<BudgetRecord>;
  /** By id. With an organization, only budgets that can count its requests. */
  list(filter?: Partial<OrganizationScope>, paging?: Paging): List<BudgetRecord>;
  /**
   * Replaces scope, limit, mode and warnings of a created budget. Settled and held amounts stay. Change a declared budget
   * in the configuration.
   * @throws GatewayError `budget_not_found`, `precondition_failed`, `invalid_argument` (another period, another unit, or
   * other organizations in the scope)
   */
  update(budget: BudgetConfiguration & IfMatch & WithActor): Promise<BudgetRecord>;
  /**
   * Removes a created budget and its raises. Its counters stay as history.
   * @throws GatewayError `budget_not_found`, `precondition_failed`
   */
  remove(reference: { readonly id: string } & IfMatch & WithActor): Promise<void>;
  /** The counters of one period, one for each subject with requests. @throws GatewayError `budget_not_found` */
  status(query: BudgetStatusQuery, paging?: Paging): List<BudgetStatus>;
  /**
   * Raises the limit of a declared or created budget until a time. Applies to the next request in every process. Raises add
   * up, at most 100 at once.
   * @throws GatewayError `budget_not_found`, `invalid_argument` (a unit other than the budget's, an amount of 0, a time in
   * the past), `idempotency_mismatch`, `precondition_failed` (`ifMatch` is the tag of the budget)
   */
  raise(raise: RaiseBudgetOptions): Promise<BudgetRaiseRecord>;
  /** The raises that apply now, oldest first. @throws GatewayError `budget_not_found` */
  raises(reference: { readonly id: string }): Promise<readonly BudgetRaiseRecord[]>;
  /**
   * Ends a raise now.
   * @throws GatewayError `budget_not_found`, `invalid_argument` if it doesn't apply now, `precondition_failed` (`ifMatch` is
   * the tag of the budget)
   */
  cancelRaise(
    reference: { readonly id: string; readonly raiseId: string } & IfMatch & WithActor,
  ): Promise<void>;
  /**
   * Recomputes every counter from its ledger while requests run, and returns those that differ: none, unless something else
   * wrote to the store. Changes nothing. Each counter and its ledger are compared as of one moment, so requests that run
   * meanwhile cause no difference. It reads every hold: a memory or SQLite store does so in chunks of 250 Steps, between
   * which requests run; in PostgreSQL, one statement does, which may take at most 2 minutes.
   */
  reconcile(): Promise<BudgetReconciliation>;
}

/** A counter that differs from its ledger, in the budget's unit. */
export interface BudgetDrift {
  readonly budgetId: string;
  readonly subject: string;
  readonly unit: CounterDrift["unit"];
  readonly periodStart: string;
  /** The counter's amounts. */
  readonly settled: number;
  readonly held: number;
  /** The amounts that its holds, settlements and corrections add up to. */
  readonly ledger: { readonly settled: number; readonly held: number };
}

/** The result of comparing all counters with their ledger. */
export interface BudgetReconciliation {
  /** The number of counters. */
  readonly counters: number;
  /** The first 1,000 counters that differ. */
  readonly drift: readonly BudgetDrift[];
}

/** A raise of a budget's limit. */
export interface RaiseBudgetOptions extends WithActor, Idempotent, IfMatch {
  /** The budget's id. */
  readonly id: string;
  /** An amount above 0 in the budget's unit. Dollars can be a number or a decimal string. */
  readonly by: BudgetLimit;
  /** ISO 8601. */
  readonly until: string;
}

const maxRaises = 100;
const maxDrift = 1_000;

export function createBudgets(context: GatewayContext, ready: () => Promise<void>): Budgets {
  const { store } = context;
  const limits = createDefinedLimits<Budget, RaisedBudget>(context, ready, {
    name: "Budget",
    noun: "budget",
    unknown: "budget_not_found",
    taken: "budget_exists",
    repository: store.budgets,
    allIn: ({ budgets }) => budgets,
    toRecord,
    factsOf,
    checkCounter: requireSameUnit,
    checkReplacing: requireSameCounters,
  });
  const { find } = limits;

  return {
    create: method(budgetCreation, ({ actor, unused, ...configuration }) =>
      limits.create(toBudget(configuration), { actor, unused }),
    ),
    get: method(budgetReference, async ({ id }) => toRecord(await find(id))),
    list: limits.list,
    update: method(budgetWriting, ({ actor, ifMatch, ...configuration }) =>
      limits.update(toBudget(configuration), { actor, ifMatch }),
    ),
    remove: method(budgetRemoval, ({ id, actor, ifMatch }) =>
      limits.remove(id, { actor, ifMatch }),
    ),
    status: (query, paging) =>
      listOf(
        async (storePaging) => {
          const { id, subject, at } = read(budgetStatusQuery, query);
          const budget = await find(id);
          const now = context.clock.now();
          const start = periodStart(budget.period, at === undefined ? now : fromIso(at));
          const selected = { budgetId: budget.id, periodStart: start };
          const page = await store.budgets.counters(
            subject === undefined ? selected : { ...selected, subject },
            storePaging,
          );
          return { ...page, data: page.data.map((counter) => statusOf(budget, counter, now)) };
        },
        (status) => status,
        paging,
      ),
    ...createRaises(context, limits),
    reconcile: () =>
      withStoreErrors(
        (async () => {
          await ready();
          const { counters, drift } = await store.budgets.reconcile({ limit: maxDrift });
          return {
            counters,
            drift: drift.map((each) => ({ ...each, periodStart: toIso(each.periodStart) })),
          };
        })(),
      ),
  };
}

type DefinedBudgets = ReturnType<typeof createDefinedLimits<Budget, RaisedBudget>>;

/** A budget with its raises and where it was defined. */
type FoundBudget = BudgetRecord & RaisedBudget;

function toRecord({ raises: _raises, ...record }: FoundBudget): BudgetRecord {
  return record;
}

function statusOf(budget: RaisedBudget, counter: BudgetCounter, now: number): BudgetStatus {
  const { budgetId, subject, settled, held, periodStart: start } = counter;
  const limit = limitInForce(budget, now);
  return {
    budgetId,
    subject,
    unit: budget.unit,
    limit,
    settled,
    held,
    remaining: limit - settled - held,
    periodStart: toIso(start),
    resetsAt: toIso(periodEnd(budget.period, start)),
  };
}

function createRaises(
  context: GatewayContext,
  { find, leafOf, changed }: DefinedBudgets,
): Pick<Budgets, "raise" | "raises" | "cancelRaise"> {
  const { store } = context;
  const inForce = (budget: RaisedBudget): readonly BudgetRaise[] =>
    budget.raises.filter(({ until }) => until > context.clock.now());

  return {
    raise: method(budgetRaising, async (options) => {
      const budget = await find(options.id);
      requireMatch(options, toRecord(budget));
      const raise = requireRaise(context, budget, options);
      const { actor } = options;
      const leaf = leafOf("budget.raised", budget, actor, raiseFactsOf(raise));
      const check = matching(options.ifMatch);
      if (!(await store.budgets.insertRaise(raise, leaf, maxRaises, check)))
        return repeated(await store.budgets.raises(), raise);
      await changed(leaf);
      return toRaiseRecord(raise);
    }),
    raises: method(budgetReference, async ({ id }) => inForce(await find(id)).map(toRaiseRecord)),
    cancelRaise: method(raiseCancellation, async ({ id, raiseId, ifMatch, actor }) => {
      const budget = await find(id);
      requireMatch({ ifMatch }, toRecord(budget));
      const raise = inForce(budget).find((candidate) => candidate.id === raiseId);
      const leaf = raise && leafOf("budget.raise_cancelled", budget, actor, raiseFactsOf(raise));
      const reference = { budgetId: id, id: raiseId };
      if (!leaf || !(await store.budgets.removeRaise(reference, leaf, matching(ifMatch))))
        throw invalidArgument(
          "raiseId",
          `\`raiseId\` must be a raise of budget ${id} that applies now.`,
        );
      await changed(leaf);
    }),
  };
}

/** The answer to a repeated raise: the existing one. */
function repeated(raises: readonly BudgetRaise[], asked: BudgetRaise): BudgetRaiseRecord {
  const { budgetId, id } = asked;
  const existing = raises.find((raise) => raise.budgetId === budgetId && raise.id === id);
  if (existing === undefined)
    throw invalidArgument(
      "id",
      `Budget ${budgetId} already has ${maxRaises} raises: cancel one or wait until one ends.`,
    );
  requireSame(existing, { ...asked, at: existing.at });
  return asReplayed(toRaiseRecord(existing));
}

function toRaiseRecord({ at, until, ...raise }: BudgetRaise): BudgetRaiseRecord {
  return { ...raise, raisedAt: toIso(at), until: toIso(until) };
}

function requireRaise(
  { ids, clock }: GatewayContext,
  budget: RaisedBudget,
  options: RaiseBudgetOptions,
): BudgetRaise {
  const { by, until: end, actor } = options;
  const amount = toAmount(by);
  if (amount.amount === 0) throw invalidArgument("by", "`by` must be above 0.");
  if (amount.unit !== budget.unit)
    throw invalidArgument(
      "by",
      `\`by\` must be in the unit of budget ${budget.id}: ${budget.unit}.`,
    );
  const at = clock.now();
  const until = fromIso(end);
  if (until <= at) throw invalidArgument("until", "`until` must be in the future.");
  return {
    id: idOfCreation(ids, options, "budgets.raise", budget.id),
    budgetId: budget.id,
    ...amount,
    at,
    until,
    actor: actor ?? null,
  };
}

function requireSameCounters(budget: Budget, before: Budget): void {
  if (before.period === budget.period && before.unit === budget.unit) return;
  throw invalidArgument(
    "period",
    "The `period` and the unit of a budget can't change: create a budget with another id.",
  );
}

/** Counters outlive their budget, and a counter of dollars can't continue in tokens. */
function requireSameUnit({ unit }: Budget, { unit: counted }: BudgetCounter): void {
  if (counted === unit) return;
  throw invalidArgument("id", `\`id\` was used before, to count ${counted}: choose another one.`);
}

/** The facts of a budget in evidence. */
function factsOf({ id, scope, unit, limit, period, mode, warnAt }: Budget): Json {
  const recordedScope: Json = JSON.parse(JSON.stringify(scope));
  // Leaves hold whole numbers only.
  return { id, limit, mode, period, scope: recordedScope, unit, warnAt: warnAt.map(String) };
}

function raiseFactsOf({ amount, at, id, until }: BudgetRaise) {
  return { raise: { amount, at, id, until } };
}
