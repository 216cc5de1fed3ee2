import { allowancesOf, type BudgetAllowance, type RateAllowance } from "../budgets/allowances.ts";
import type { RateLimitScope } from "../domain/rate-limit.ts";
import type { GatewayRequest } from "../http/gateway-request.ts";
import type { GatewayResponse } from "../http/gateway-response.ts";
import { orUnavailable } from "../pipeline/store-calls.ts";
import { answerCaller, jsonHeaders, type RequestScope } from "./endpoint.ts";
import { usableAliases } from "./models.ts";

/**
 * GET /v1/key: what the calling key may do, and how much of its budgets and rate limits is left. It reveals nothing about
 * other callers, except how much of a shared budget or rate limit is left.
 */
export function getKey(scope: RequestScope, request: GatewayRequest): Promise<GatewayResponse> {
  const { context } = scope;
  return answerCaller(scope, request, async (caller) => {
    const { budgets, rateLimits, hasMore } = await orUnavailable(allowancesOf(context, caller));
    const key = {
      object: "key",
      id: caller.keyId,
      label: caller.keyLabel,
      organization_id: caller.organizationId,
      user_id: caller.userId,
      source: caller.source,
      default_data_class: caller.defaultDataClass,
      minimum_data_class: caller.minimumDataClass,
      models: caller.allowlists,
      aliases: Object.fromEntries(await usableAliases(context, caller)),
      budgets: budgets.map(budgetObject),
      rate_limits: rateLimits.map(rateLimitObject),
      has_more: hasMore,
    };
    return { status: 200, headers: jsonHeaders(), body: JSON.stringify(key) };
  });
}

function budgetObject({ budget, limit, remaining, resetsAt }: BudgetAllowance): object {
  const { id, unit, mode, period, scope } = budget;
  const resets_at = resetsAt === null ? null : new Date(resetsAt).toISOString();
  return { id, unit, mode, period, limit, remaining, resets_at, ...countedRequests(scope) };
}

function rateLimitObject({ rateLimit, state }: RateAllowance): object {
  const { id, unit, per, limit, burst, scope } = rateLimit;
  return {
    id,
    unit,
    per,
    limit,
    burst,
    each: state === null ? scope.each : null,
    remaining: state?.remaining ?? null,
    reset_ms: state?.resetMs ?? null,
    ...countedRequests(scope),
  };
}

/** Which of the caller's requests a scope counts. Null means all. */
function countedRequests({ gateway, connection, model }: RateLimitScope): object {
  return {
    gateways: gateway === undefined ? null : [gateway].flat(),
    connection: connection ?? null,
    models: model === undefined ? null : [model].flat(),
  };
}
