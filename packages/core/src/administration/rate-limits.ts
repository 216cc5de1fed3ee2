import {
  type RateLimitConfiguration,
  rateCounter,
  rateStateAt,
  toRateLimit,
} from "../budgets/rate-limits.ts";
import type { BudgetCounter } from "../domain/budget.ts";
import type { EvidenceLeaf, LeafKind } from "../domain/evidence-leaf.ts";
import type { RateLimit } from "../domain/rate-limit.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { createLeaf } from "../evidence/leaves.ts";
import { read } from "../input/read.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import { createReader, invalid, organizationOf, requireKnownGateways } from "./budgets.ts";
import type { WithActor } from "./keys.ts";
import { type List, listOf, type Paging, pagesById } from "./list.ts";
import { method } from "./method.ts";
import {
  budgetReference,
  budgetRemoval,
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
  /** Requests or tokens that fit now, at most the burst; or places for further Steps. */
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
  /** Applies to the next request in every process. @throws GatewayError `invalid_argument` */
  create(rateLimit: RateLimitConfiguration & WithActor): Promise<RateLimitRecord>;
  /** @throws GatewayError `rate_limit_not_found` */
  get(reference: { readonly id: string }): Promise<RateLimitRecord>;
  /** By id. With an organization, only rate limits that can count its requests. */
  list(filter?: Partial<OrganizationScope>, paging?: Paging): List<RateLimitRecord>;
  /** Replaces all but the id of a created rate limit. Its used part stays used. Change a declared one in the configuration. */
  update(rateLimit: RateLimitConfiguration & WithActor): Promise<RateLimitRecord>;
  /** Removes a created rate limit. */
  remove(reference: { readonly id: string } & WithActor): Promise<void>;
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
    create: method(rateLimitWriting, async ({ actor, ...configuration }) => {
      const rateLimit = requireRateLimit(context, configuration);
      const taken = new Set((await all()).map(({ id }) => id));
      for (const { id } of (await budgets.reload()).budgets) taken.add(id);
      const leaf = rateLimitLeaf(context, "rate_limit.created", { rateLimit, actor });
      if (taken.has(rateLimit.id) || !(await store.rateLimits.insert(rateLimit, leaf)))
        throw invalid("id", `\`id\` is already taken: ${rateLimit.id}.`);
      await budgets.reload();
      return { ...rateLimit, origin: "created" };
    }),
    get: method(budgetReference, ({ id }) => find(id)),
    list: (filter = {}, paging) =>
      listOf(pagesById("rate limits", all, filter), (record) => record, paging),
    update: method(rateLimitWriting, async ({ actor, ...configuration }) => {
      const rateLimit = requireRateLimit(context, configuration);
      await requireCreated(rateLimit.id);
      const leaf = rateLimitLeaf(context, "rate_limit.updated", { rateLimit, actor });
      if (!(await store.rateLimits.update(rateLimit, leaf))) throw notFound(rateLimit.id);
      await budgets.reload();
      return { ...rateLimit, origin: "created" };
    }),
    remove: method(budgetRemoval, async ({ id, actor }) => {
      const rateLimit = await requireCreated(id);
      const leaf = rateLimitLeaf(context, "rate_limit.removed", { rateLimit, actor });
      if (!(await store.rateLimits.remove(id, leaf))) throw notFound(id);
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

function statusOf(
  rateLimit: RateLimit,
  { subject, settled, held }: BudgetCounter,
  now: number,
): RateLimitStatus {
  const { remaining, resetMs } =
    rateLimit.unit === "steps"
      ? { remaining: Math.max(0, rateLimit.limit - held), resetMs: 0 }
      : rateStateAt(rateLimit, settled, now);
  const { id: rateLimitId, unit, limit } = rateLimit;
  return { rateLimitId, subject, unit, limit, remaining, resetMs };
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
  { ids, clock }: GatewayContext,
  kind: LeafKind,
  { rateLimit, actor }: { readonly rateLimit: RateLimit; readonly actor: string | undefined },
): EvidenceLeaf {
  const { id, scope, unit, limit, per, burst } = rateLimit;
  const organizationId = organizationOf(scope);
  const recordedScope = JSON.parse(JSON.stringify(scope));
  return createLeaf(
    { id: ids.uuid(), organizationId, kind, at: clock.now() },
    { actor: actor ?? null, rate_limit: { burst, id, limit, per, scope: recordedScope, unit } },
  );
}

function notFound(id: string): GatewayError {
  return new GatewayError("rate_limit_not_found", `Unknown rate limit: ${id}.`);
}
