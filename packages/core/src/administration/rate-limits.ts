import {
  type RateLimitConfiguration,
  rateCounter,
  rateStateOf,
  toRateLimit,
} from "../budgets/rate-limits.ts";
import type { BudgetCounter } from "../domain/budget.ts";
import type { EvidenceLeaf, LeafKind } from "../domain/evidence-leaf.ts";
import type { RateLimit } from "../domain/rate-limit.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { changeLeaf } from "../evidence/leaves.ts";
import { read } from "../input/read.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import {
  createReader,
  matching,
  organizationOf,
  replacing,
  requireEqual,
  requireKnownGateways,
  requireUnused,
  taken,
  type UnusedId,
} from "./budgets.ts";
import { reportChange } from "./changes.ts";
import type { IfMatch } from "./etag.ts";
import type { WithActor } from "./keys.ts";
import { type List, listOf, type Paging, pagesById } from "./list.ts";
import { method } from "./method.ts";
import {
  budgetReference,
  budgetRemoval,
  rateLimitCreation,
  rateLimitStatusQuery,
  rateLimitWriting,
} from "./schemas.ts";
import type { OrganizationScope } from "./tenant.ts";

/** A rate limit and where it was defined. */
export interface RateLimitRecord extends RateLimit {
  readonly origin: "declared" | "created";
}

/** One counter of a rate limit, now. */
export interface RateLimitStatus {
  readonly rateLimitId: string;
  /** The value of `each`; a user as `[organization, user]` in JSON. Empty without `each`. */
  readonly subject: string;
  readonly unit: RateLimit["unit"];
  readonly limit: number;
  /** Requests or tokens allowed at once; 0 for Steps in flight. */
  readonly burst: number;
  /** Requests or tokens that fit now, at most `burst`; or places for further Steps. */
  readonly remaining: number;
  /** Milliseconds until the whole burst is available again; 0 for Steps in flight. */
  readonly resetMs: number;
}

/** Selects counters of a rate limit. */
export interface RateLimitStatusQuery {
  readonly id: string;
  /** One value of `each`, as in `RateLimitStatus`. Default: all. */
  readonly subject?: string;
}

/** Rate limits, both those declared in the configuration and those created at run time. */
export interface RateLimits {
  /**
   * Applies to the next request in every process. Creating an equal rate limit again changes nothing and returns it.
   * @throws GatewayError `invalid_argument`, or `rate_limit_exists` if the id is taken
   */
  create(rateLimit: RateLimitConfiguration & UnusedId & WithActor): Promise<RateLimitRecord>;
  /** @throws GatewayError `rate_limit_not_found` */
  get(reference: { readonly id: string }): Promise<RateLimitRecord>;
  /** By id. With an organization, only rate limits that can count its requests. */
  list(filter?: Partial<OrganizationScope>, paging?: Paging): List<RateLimitRecord>;
  /**
   * Replaces all but the id of a created rate limit. Its used part stays used. Change a declared one in the configuration.
   * @throws GatewayError `rate_limit_not_found`, `precondition_failed`, `invalid_argument` (such as other organizations in
   * the scope)
   */
  update(rateLimit: RateLimitConfiguration & IfMatch & WithActor): Promise<RateLimitRecord>;
  /** Removes a created rate limit. @throws GatewayError `rate_limit_not_found`, `precondition_failed` */
  remove(reference: { readonly id: string } & IfMatch & WithActor): Promise<void>;
  /** The counters, one for each subject with requests. @throws GatewayError `rate_limit_not_found` */
  status(query: RateLimitStatusQuery, paging?: Paging): List<RateLimitStatus>;
}

export function createRateLimits(context: GatewayContext, ready: () => Promise<void>): RateLimits {
  const { store, budgets } = context;

  const { all, find, requireCreated } = createReader<RateLimit>(ready, {
    noun: "Rate limit",
    created: () => store.rateLimits.list(),
    all: async () => (await budgets.reload()).rateLimits,
    notFound,
  });

  return {
    create: method(rateLimitCreation, async ({ actor, unused = false, ...configuration }) => {
      const rateLimit = requireRateLimit(context, configuration);
      const record: RateLimitRecord = { ...rateLimit, origin: "created" };
      const existing = async () => {
        const found = (await all()).find(({ id }) => id === rateLimit.id);
        return found === undefined ? null : requireEqual(found, record, "rate_limit_exists");
      };
      const known = await existing();
      if (known !== null) return known;
      if (unused) await requireUnused(context, rateLimit);
      const isBudget = (await budgets.reload()).budgets.some(({ id }) => id === rateLimit.id);
      const leaf = rateLimitLeaf(context, "rate_limit.created", { rateLimit, actor });
      if (isBudget || !(await store.rateLimits.insert(rateLimit, leaf)))
        return (await existing()) ?? taken(rateLimit, "rate_limit_exists");
      reportChange(context, leaf);
      await budgets.reload();
      return record;
    }),
    get: method(budgetReference, ({ id }) => find(id)),
    list: (filter = {}, paging) =>
      listOf(pagesById("rate limits", all, filter), (record) => record, paging),
    update: method(rateLimitWriting, async ({ actor, ifMatch, ...configuration }) => {
      const rateLimit = requireRateLimit(context, configuration);
      await requireCreated(rateLimit.id);
      const leaf = rateLimitLeaf(context, "rate_limit.updated", { rateLimit, actor });
      if (!(await store.rateLimits.update(rateLimit, leaf, replacing(rateLimit, ifMatch))))
        throw notFound(rateLimit.id);
      reportChange(context, leaf);
      await budgets.reload();
      return { ...rateLimit, origin: "created" };
    }),
    remove: method(budgetRemoval, async ({ id, ifMatch, actor }) => {
      const rateLimit = await requireCreated(id);
      const leaf = rateLimitLeaf(context, "rate_limit.removed", { rateLimit, actor });
      if (!(await store.rateLimits.remove(id, leaf, matching(ifMatch)))) throw notFound(id);
      reportChange(context, leaf);
      await budgets.reload();
    }),
    status: (query, paging) =>
      listOf(
        async (storePaging) => {
          const { id, subject } = read(rateLimitStatusQuery, query);
          const rateLimit = await find(id);
          const { periodStart } = rateCounter(rateLimit, "");
          const page = await store.budgets.counters(
            { budgetId: id, periodStart, ...(subject === undefined ? {} : { subject }) },
            storePaging,
          );
          const now = context.clock.now();
          return { ...page, data: page.data.map((counter) => statusOf(rateLimit, counter, now)) };
        },
        (status) => status,
        paging,
      ),
  };
}

function statusOf(rateLimit: RateLimit, counter: BudgetCounter, now: number): RateLimitStatus {
  const { remaining, resetMs } = rateStateOf(rateLimit, counter, now);
  const { id: rateLimitId, unit, limit, burst } = rateLimit;
  return { rateLimitId, subject: counter.subject, unit, limit, burst, remaining, resetMs };
}

function requireRateLimit(
  context: GatewayContext,
  configuration: RateLimitConfiguration,
): RateLimit {
  const rateLimit = toRateLimit(configuration);
  requireKnownGateways(context, rateLimit);
  return rateLimit;
}

function rateLimitLeaf(
  context: GatewayContext,
  kind: LeafKind,
  { rateLimit, actor }: { readonly rateLimit: RateLimit; readonly actor: string | undefined },
): EvidenceLeaf {
  const { id, scope, unit, limit, per, burst } = rateLimit;
  const recordedScope = JSON.parse(JSON.stringify(scope));
  const place = { kind, organizationId: organizationOf(scope), actor };
  return changeLeaf(context, place, {
    rate_limit: { burst, id, limit, per, scope: recordedScope, unit },
  });
}

function notFound(id: string): GatewayError {
  return new GatewayError("rate_limit_not_found", `Unknown rate limit: ${id}.`);
}
