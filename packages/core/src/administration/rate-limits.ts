import {
  type RateLimitConfiguration,
  rateCounter,
  rateStateOf,
  toRateLimit,
} from "../budgets/rate-limits.ts";
import type { BudgetCounter } from "../domain/budget.ts";
import type { RateLimit } from "../domain/rate-limit.ts";
import { read } from "../input/read.ts";
import type { Json } from "../kernel/stable-json.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import type { UnusedId } from "./budgets.ts";
import { createDefinedLimits } from "./defined-limits.ts";
import type { IfMatch } from "./etag.ts";
import type { WithActor } from "./keys.ts";
import { type List, listOf, type Paging } from "./list.ts";
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
  const { store } = context;
  const limits = createDefinedLimits<RateLimit, RateLimit>(context, ready, {
    name: "Rate limit",
    noun: "rate_limit",
    unknown: "rate_limit_not_found",
    taken: "rate_limit_exists",
    repository: store.rateLimits,
    allIn: ({ rateLimits }) => rateLimits,
    toRecord: (found) => found,
    factsOf,
  });

  return {
    create: method(rateLimitCreation, ({ actor, unused, ...configuration }) =>
      limits.create(toRateLimit(configuration), { actor, unused }),
    ),
    get: method(budgetReference, ({ id }) => limits.find(id)),
    list: limits.list,
    update: method(rateLimitWriting, ({ actor, ifMatch, ...configuration }) =>
      limits.update(toRateLimit(configuration), { actor, ifMatch }),
    ),
    remove: method(budgetRemoval, ({ id, actor, ifMatch }) =>
      limits.remove(id, { actor, ifMatch }),
    ),
    status: (query, paging) =>
      listOf(
        async (storePaging) => {
          const { id, subject } = read(rateLimitStatusQuery, query);
          const rateLimit = await limits.find(id);
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

/** The facts of a rate limit in evidence. */
function factsOf({ id, scope, unit, limit, per, burst }: RateLimit): Json {
  const recordedScope: Json = JSON.parse(JSON.stringify(scope));
  return { burst, id, limit, per, scope: recordedScope, unit };
}
