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
import type { EvidenceLeaf, LeafKind } from "../domain/evidence-leaf.ts";
import type { RateLimitScope } from "../domain/rate-limit.ts";
import { GatewayError, invalidArgument } from "../errors/gateway-error.ts";
import { changeLeaf } from "../evidence/leaves.ts";
import { read } from "../input/read.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import { reportChange } from "./changes.ts";
import { etagOf, type IfMatch, requireMatch } from "./etag.ts";
import { asReplayed, type Idempotent, idOfCreation, requireSame } from "./idempotency.ts";
import type { WithActor } from "./keys.ts";
import { type List, listOf, type Paging, pagesById } from "./list.ts";
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
  const { store, budgets } = context;
  const { all, find, requireCreated } = createReader<RaisedBudget>(ready, {
    noun: "Budget",
    created: () => store.budgets.list(),
    all: async () => (await budgets.reload()).budgets,
    notFound,
  });

  return {
    create: method(budgetCreation, async ({ actor, unused = false, ...configuration }) => {
      const budget = requireBudget(context, configuration);
      const record: BudgetRecord = { ...budget, origin: "created" };
      const existing = async () => {
        const found = (await all()).find(({ id }) => id === budget.id);
        return found === undefined ? null : requireEqual(toRecord(found), record, "budget_exists");
      };
      const known = await existing();
      if (known !== null) return known;
      await requireSameUnit(context, budget);
      if (unused) await requireUnused(context, budget);
      const isRateLimit = (await budgets.reload()).rateLimits.some(({ id }) => id === budget.id);
      const leaf = budgetLeaf(context, "budget.created", { budget, actor });
      if (isRateLimit || !(await store.budgets.insert(budget, leaf)))
        return (await existing()) ?? taken(budget, "budget_exists");
      reportChange(context, leaf);
      await budgets.reload();
      return record;
    }),
    get: method(budgetReference, async ({ id }) => toRecord(await find(id))),
    list: (filter = {}, paging) => listOf(pagesById("budgets", all, filter), toRecord, paging),
    update: method(budgetWriting, async ({ actor, ifMatch, ...configuration }) => {
      const budget = requireBudget(context, configuration);
      requireSameCounters(budget, await requireCreated(budget.id));
      const leaf = budgetLeaf(context, "budget.updated", { budget, actor });
      const check = replacing(budget, ifMatch);
      if (!(await store.budgets.update(budget, leaf, check))) throw notFound(budget.id);
      reportChange(context, leaf);
      await budgets.reload();
      return { ...budget, origin: "created" };
    }),
    remove: method(budgetRemoval, async ({ id, ifMatch, actor }) => {
      const budget = await requireCreated(id);
      const leaf = budgetLeaf(context, "budget.removed", { budget, actor });
      if (!(await store.budgets.remove(id, leaf, matching(ifMatch)))) throw notFound(id);
      reportChange(context, leaf);
      await budgets.reload();
    }),
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
    ...createRaises(context, find),
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

/** Compares a created budget or rate limit before a change with the tag that the change expects. */
export function matching(ifMatch: string | undefined) {
  return (before: object): void =>
    requireMatch(ifMatch === undefined ? {} : { ifMatch }, { ...before, origin: "created" });
}

/** The part of a budget or rate limit that names its organizations. */
interface Scoped {
  readonly scope: Pick<RateLimitScope, "organization">;
}

/**
 * As `matching`, but also rejects other organizations. Everyone with access to a budget or rate limit sees its counters,
 * which show how much the users of its organizations have used.
 */
export function replacing(next: Scoped, ifMatch: string | undefined) {
  const check = matching(ifMatch);
  return (before: Scoped): void => {
    check(before);
    if (organizationsOf(next) === organizationsOf(before)) return;
    throw invalidArgument(
      "scope.organization",
      "`scope.organization` can't change: create a budget or rate limit with another id.",
    );
  };
}

function organizationsOf({ scope }: Scoped): string {
  return JSON.stringify([...new Set([scope.organization ?? []].flat())].sort());
}

type Exists = "budget_exists" | "rate_limit_exists";

/** Returns a record that exists if it is the one that was asked for: a repeated creation has the same result. */
export function requireEqual<Row extends { readonly id: string }>(
  existing: Row,
  asked: Row,
  code: Exists,
): Row {
  return etagOf(existing) === etagOf(asked) ? existing : taken(asked, code);
}

export function taken({ id }: { readonly id: string }, code: Exists): never {
  const message = `\`id\` is already taken: ${id}. Choose another one, or update what exists.`;
  throw new GatewayError(code, message, { param: "id" });
}

/** A budget with its raises and where it was defined. */
type FoundBudget = BudgetRecord & RaisedBudget;

/** Budgets or rate limits, declared in the configuration or created at run time. */
interface Defined<Row> {
  readonly noun: string;
  readonly created: () => Promise<readonly { readonly id: string }[]>;
  readonly all: () => Promise<readonly Row[]>;
  readonly notFound: (id: string) => GatewayError;
}

/** Reads rows with where they were defined. */
export function createReader<Row extends { readonly id: string }>(
  ready: () => Promise<void>,
  defined: Defined<Row>,
) {
  type Found = Row & Pick<BudgetRecord, "origin">;
  async function all(): Promise<readonly Found[]> {
    await ready();
    const created = new Set((await defined.created()).map(({ id }) => id));
    return (await defined.all()).map((row) => ({
      ...row,
      origin: created.has(row.id) ? "created" : "declared",
    }));
  }

  async function find(id: string): Promise<Found> {
    const row = (await all()).find((candidate) => candidate.id === id);
    if (!row) throw defined.notFound(id);
    return row;
  }

  async function requireCreated(id: string): Promise<Found> {
    const row = await find(id);
    if (row.origin === "created") return row;
    throw invalidArgument(
      "id",
      `${defined.noun} ${id} is declared in the configuration: change it there.`,
    );
  }

  return { all, find, requireCreated };
}

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

/** `find` reads a budget from the store. */
function createRaises(
  context: GatewayContext,
  find: (id: string) => Promise<FoundBudget>,
): Pick<Budgets, "raise" | "raises" | "cancelRaise"> {
  const { store, budgets } = context;
  const inForce = (budget: RaisedBudget): readonly BudgetRaise[] =>
    budget.raises.filter(({ until }) => until > context.clock.now());

  return {
    raise: method(budgetRaising, async (options) => {
      const budget = await find(options.id);
      requireMatch(options, toRecord(budget));
      const raise = requireRaise(context, budget, options);
      const leaf = budgetLeaf(context, "budget.raised", { budget, raise, actor: options.actor });
      const check = matching(options.ifMatch);
      if (!(await store.budgets.insertRaise(raise, leaf, maxRaises, check)))
        return repeated(await store.budgets.raises(), raise);
      reportChange(context, leaf);
      await budgets.reload();
      return toRaiseRecord(raise);
    }),
    raises: method(budgetReference, async ({ id }) => inForce(await find(id)).map(toRaiseRecord)),
    cancelRaise: method(raiseCancellation, async ({ id, raiseId, ifMatch, actor }) => {
      const budget = await find(id);
      requireMatch(ifMatch === undefined ? {} : { ifMatch }, toRecord(budget));
      const raise = inForce(budget).find((candidate) => candidate.id === raiseId);
      const leaf = raise && budgetLeaf(context, "budget.raise_cancelled", { budget, raise, actor });
      const reference = { budgetId: id, id: raiseId };
      if (!leaf || !(await store.budgets.removeRaise(reference, leaf, matching(ifMatch))))
        throw invalidArgument(
          "raiseId",
          `\`raiseId\` must be a raise of budget ${id} that applies now.`,
        );
      reportChange(context, leaf);
      await budgets.reload();
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

function requireBudget(context: GatewayContext, configuration: BudgetConfiguration): Budget {
  const budget = toBudget(configuration);
  requireKnownGateways(context, budget);
  return budget;
}

/** @throws GatewayError `invalid_argument` for a scope that names an unknown gateway */
export function requireKnownGateways(
  { providers }: Pick<GatewayContext, "providers">,
  { scope }: { readonly scope: Pick<RateLimitScope, "gateway"> },
): void {
  const unknown = [scope.gateway ?? []].flat().find((gateway) => !providers.has(gateway));
  if (unknown !== undefined) throw invalidArgument("scope.gateway", `Unknown gateway: ${unknown}.`);
}

function requireSameCounters(budget: Budget, before: Budget): void {
  if (before.period === budget.period && before.unit === budget.unit) return;
  throw invalidArgument(
    "period",
    "The `period` and the unit of a budget can't change: create a budget with another id.",
  );
}

/** Counters outlive their budget, and a counter of dollars can't continue in tokens. */
async function requireSameUnit(context: GatewayContext, { id, unit }: Budget): Promise<void> {
  const { data } = await context.store.budgets.counters(
    { budgetId: id },
    { cursor: null, limit: 1 },
  );
  const counted = data[0]?.unit ?? unit;
  if (counted === unit) return;
  throw invalidArgument("id", `\`id\` was used before, to count ${counted}: choose another one.`);
}

/** @throws GatewayError `invalid_argument` for an id with counters, of a budget or of a rate limit */
export async function requireUnused(
  { store }: Pick<GatewayContext, "store">,
  { id }: { readonly id: string },
): Promise<void> {
  const { data } = await store.budgets.counters({ budgetId: id }, { cursor: null, limit: 1 });
  if (data.length > 0)
    throw invalidArgument("id", `\`id\` was used before: ${id}. Choose another one.`);
}

/** The organization whose log has the leaf: the only one that a scope counts; empty for several or all. */
export function organizationOf({ organization }: Pick<RateLimitScope, "organization">): string {
  const [only = "", ...others] = new Set([organization ?? []].flat());
  return others.length === 0 ? only : "";
}

function budgetLeaf(
  context: GatewayContext,
  kind: LeafKind,
  {
    budget,
    raise,
    actor,
  }: {
    readonly budget: Budget;
    readonly raise?: BudgetRaise;
    readonly actor: string | undefined;
  },
): EvidenceLeaf {
  const { id, scope, unit, limit, period, mode, warnAt } = budget;
  const place = { kind, organizationId: organizationOf(scope), actor };
  return changeLeaf(context, place, {
    budget: {
      id,
      limit,
      mode,
      period,
      scope: JSON.parse(JSON.stringify(scope)),
      unit,
      // Leaves hold whole numbers only.
      warnAt: warnAt.map(String),
    },
    ...(raise === undefined
      ? {}
      : { raise: { amount: raise.amount, at: raise.at, id: raise.id, until: raise.until } }),
  });
}

function notFound(id: string): GatewayError {
  return new GatewayError("budget_not_found", `Unknown budget: ${id}.`);
}
