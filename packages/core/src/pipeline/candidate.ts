import { type Estimates, holdsHard, holdsOn, matchingBudgets } from "../budgets/holds.ts";
import type { Hold } from "../domain/budget.ts";
import type { CompletionRequest } from "../domain/completion-request.ts";
import { countImages, estimateInput } from "../domain/estimate.ts";
import type { PolicyDecision, PolicyFacts } from "../domain/policy-decision.ts";
import { costOf, type Price } from "../domain/price.ts";
import type { AttemptStart } from "../domain/step.ts";
import { decide } from "../policy/decide.ts";
import type { Route } from "../routing/route.ts";
import { durable } from "./durable.ts";
import type { PreparedCall } from "./governed-call.ts";
import type { Line } from "./line.ts";

/** A recorded decision on one model, with the price and the input estimate it was made on. */
export interface Decided {
  readonly route: Route;
  readonly dataClass: string;
  readonly decision: PolicyDecision;
  readonly price: Price | null;
  readonly inputTokens: number;
}

/** A permitted way to answer a call: under which decision, capped how, with which estimate, against which holds. */
export interface Candidate {
  readonly decided: Decided;
  readonly request: CompletionRequest;
  readonly attempt: AttemptStart;
  readonly holds: readonly Hold[];
  readonly budgetsVersion: number;
}

/** Decides on one model for a call: its first, or a fallback, whose decision links to the first. */
export function decideOn(
  line: Line,
  call: PreparedCall,
  {
    route,
    dataClass,
    first,
  }: {
    readonly route: Route;
    readonly dataClass: string;
    readonly first: PolicyDecision | null;
  },
): Decided {
  const at = line.clock.now();
  const price = priceOf(line, route, at);
  const inputTokens = estimateInput(call.request, line.limits.imageTokens);
  const output = outputCap(line, route, call.request, undefined);
  const cost = estimateCost(price, inputTokens, output);
  const facts = factsOf(call, { route, dataClass, input: inputTokens, output, cost });
  const verdict = decide(line.policy, facts, {
    allowlists: call.caller.allowlists,
    dataClasses: line.dataClasses,
  });
  const decision: PolicyDecision = {
    ...verdict,
    id: line.ids.uuid(),
    at,
    facts,
    policyVersion: line.policy.version,
    firstDecisionId: first?.id ?? null,
  };
  return { route, dataClass, decision, price, inputTokens };
}

/** Why a decided call cannot be made; null when it can. A demand the route cannot meet is told before any budget. */
export function refusalOf({
  decision,
  route,
}: Decided): "policy_denied" | "connection_required" | null {
  if (decision.effect === "deny") return "policy_denied";
  return decision.obligations?.connection === "customer" && route.connection !== "customer"
    ? "connection_required"
    : null;
}

/** Computes an attempt and its holds; null where a hard budget in US dollars applies and there is no price. */
export async function planAttempt(
  line: Line,
  call: PreparedCall,
  { decided, number }: { readonly decided: Decided; readonly number: number },
): Promise<Candidate | null> {
  const { route, decision, price, inputTokens } = decided;
  const { budgets, version } = await durable(line.budgets.current());
  const spender = { ...call.caller, model: route.model, connection: route.connection };
  const matching = matchingBudgets(budgets, spender);
  if (price === null && holdsHard(matching, ["usd"])) return null;
  const at = line.clock.now();
  const policyCap = decision.obligations?.maxOutputTokens;
  const output = outputCap(line, route, call.request, policyCap);
  const capped = policyCap !== undefined || holdsHard(matching, ["usd", "tokens"]);
  const estimates: Estimates = {
    usd: estimateCost(price, inputTokens, output),
    tokens: inputTokens + output,
    requests: 1,
  };
  return {
    decided,
    request: capped ? { ...call.request, maxOutputTokens: output } : call.request,
    attempt: {
      number,
      decisionId: decision.id,
      ...route.model,
      connection: route.connection,
      price,
      estimatedInputTokens: inputTokens,
      estimatedOutputTokens: output,
      startedAt: at,
    },
    holds: holdsOn(matching, spender, { estimates, at }),
    budgetsVersion: version,
  };
}

/** A price book of the host's own may fail: then the price is unknown, which is not zero. */
function priceOf(line: Line, { model }: Route, at: number): Price | null {
  try {
    return line.prices.priceOf(model, at);
  } catch {
    line.notify({ type: "gateway.degraded", at, what: "prices" });
    return null;
  }
}

/** More than any model writes, and few enough that sums and costs stay exact: some clients ask for 2^53 - 1. */
const mostOutputTokens = 2_147_483_647;

/** The smallest cap that is given, else the model's own, else the configured one. */
function outputCap(
  line: Line,
  route: Route,
  request: CompletionRequest,
  policyCap: number | undefined,
): number {
  const asked = [request.maxOutputTokens ?? [], policyCap ?? []].flat();
  const own = line.modelFacts(route.model).maxOutputTokens ?? line.limits.maxOutputTokens;
  return Math.min(...(asked.length > 0 ? asked : [own]), mostOutputTokens);
}

function estimateCost(
  price: Price | null,
  promptTokens: number,
  completionTokens: number,
): number | null {
  return (
    price &&
    costOf({ promptTokens, completionTokens, totalTokens: promptTokens + completionTokens }, price)
  );
}

function factsOf(
  { caller, request }: PreparedCall,
  {
    route,
    dataClass,
    input,
    output,
    cost,
  }: {
    readonly route: Route;
    readonly dataClass: string;
    readonly input: number;
    readonly output: number;
    readonly cost: number | null;
  },
): PolicyFacts {
  return {
    organization: caller.organizationId,
    user: caller.userId,
    key: caller.keyId,
    source: caller.source,
    dataClass,
    ...route.model,
    connection: route.connection,
    ...(request.store === undefined ? {} : { store: request.store }),
    tools: (request.tools?.length ?? 0) > 0,
    images: countImages(request) > 0,
    structuredOutput:
      request.responseFormat !== undefined && request.responseFormat.type !== "text",
    estimatedInputTokens: input,
    estimatedOutputTokens: output,
    estimatedCostNanoUsd: cost,
  };
}
