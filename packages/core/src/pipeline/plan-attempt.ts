import type { BudgetSnapshot } from "../budgets/budget-cache.ts";
import { type Estimates, withAmounts } from "../budgets/holds.ts";
import { fitsAt, type RateTemplate, rateHold } from "../budgets/rate-limits.ts";
import type { RefusedHold } from "../contracts/step-verbs.ts";
import { type Hold, isBudgetUnit } from "../domain/budget.ts";
import type { Caller } from "../domain/caller.ts";
import type { CompletionRequest } from "../domain/completion-request.ts";
import { highestClass } from "../domain/data-class.ts";
import {
  estimateEmbedding,
  estimateInput,
  type MessagesSize,
  sizeOfMessages,
} from "../domain/estimate.ts";
import type { ModelFacts } from "../domain/model-facts.ts";
import type {
  ConnectionOwnership,
  PolicyDecision,
  PolicyFacts,
} from "../domain/policy-decision.ts";
import { isPrice, maxCost, type Price } from "../domain/price.ts";
import { stateOrigin } from "../domain/provider-state.ts";
import { tierOf, tiersFor } from "../domain/service-tier.ts";
import type { AttemptStart, DroppedFields } from "../domain/step.ts";
import type { ModelRoute } from "../routing/route.ts";
import type { SentMessages } from "../sessions/conversation-cache.ts";
import { countDropped, requestFor } from "../sessions/provider-state.ts";
import type { GatewayContext } from "./context.ts";
import type { CachedDecision } from "./decision-cache.ts";
import type { PreparedCall } from "./governed-call.ts";
import { meet, type OutputCap } from "./obligations.ts";
import { orUnavailable } from "./store-calls.ts";

/** A decision on one model, with the price and the input estimate behind it. */
export interface RoutedDecision {
  readonly route: ModelRoute;
  readonly cached: CachedDecision;
  readonly dataClass: string;
  readonly decision: PolicyDecision;
  readonly price: Price | null;
  readonly modelFacts: ModelFacts;
  /** The request to send, with only the state that belongs to this route. */
  readonly request: CompletionRequest;
  /** State that belongs to other routes, counted by name. */
  readonly dropped: DroppedFields;
  readonly inputTokens: number;
  /** The size of its messages. */
  readonly size: MessagesSize;
}

/** A permitted attempt: its decision, its output cap, its estimates and its holds. */
export interface PlannedAttempt {
  readonly routed: RoutedDecision;
  readonly request: CompletionRequest;
  readonly attempt: AttemptStart;
  /** On its rate limits first, in the order of `rates`, then on its budgets. */
  readonly holds: readonly Hold[];
  readonly rates: readonly RateTemplate[];
  readonly budgetsVersion: number;
}

/** Decides on one model: the requested one, or a fallback, whose decision links to the first. */
export function decideRoute(
  context: GatewayContext,
  call: PreparedCall,
  {
    route,
    dataClass,
    first,
  }: {
    readonly route: ModelRoute;
    readonly dataClass: string;
    readonly first: PolicyDecision | null;
  },
): RoutedDecision {
  const at = context.clock.now();
  const price = priceOf(context, route, at);
  const { request, dropped } = requestOn(route, call);
  const size = sizeOfMessages(request.messages, sentBefore(call, request));
  const inputTokens =
    call.embedding === undefined
      ? estimateInput(request, size, context.limits.imageTokens)
      : estimateEmbedding(call.embedding);
  const modelFacts = context.modelFacts(route.model);
  const { tokens: output } = outputCap(context, modelFacts, call);
  const serviceTiers = tiersFor(call.request.serviceTier, route.provider.billing?.autoTiers ?? []);
  const basis = { price, serviceTiers, estimatedInputTokens: inputTokens };
  const { usd: cost } = estimatesOf(basis, output);
  const session = context.policy.sessions === "ignore" ? null : sessionClassOf(context, call);
  const estimated = { input: inputTokens, output, cost };
  const policyFacts = factsOf(call, { route, dataClass, session, size, estimated });
  const cached = context.decisionCache.entryFor({ caller: call.caller, route, facts: policyFacts });
  const decision: PolicyDecision = {
    ...cached.verdictFor(policyFacts),
    id: context.ids.uuid(),
    at,
    facts: policyFacts,
    policyVersion: context.policy.version,
    firstDecisionId: first === null ? null : (first.firstDecisionId ?? first.id),
    refusal: null,
    ...chosenAs(call, route),
  };
  return {
    route,
    cached,
    dataClass,
    decision,
    price,
    modelFacts,
    request,
    dropped,
    inputTokens,
    size,
  };
}

function chosenAs(
  { selection }: PreparedCall,
  route: ModelRoute,
): Pick<PolicyDecision, "choice"> | null {
  const choice = selection?.choiceOf(route) ?? null;
  return choice && { choice };
}

/** The messages that an earlier request already sent, if these are sent unchanged; null for none. */
export function sentBefore(
  { known, request: { messages } }: PreparedCall,
  sent: CompletionRequest,
): SentMessages | null {
  return sent.messages === messages ? (known?.sent ?? null) : null;
}

function requestOn({ model, stateNeeds }: ModelRoute, { request, state }: PreparedCall) {
  const { note, counts } = countDropped();
  const target = { origin: stateOrigin(model), needs: stateNeeds, restored: state.restored };
  return { request: requestFor(request, target, note), dropped: counts() };
}

/** Computes an attempt and its holds; null if a hard budget in US dollars applies but the tier has no price. */
export function planAttempt(
  context: GatewayContext,
  call: PreparedCall,
  plan: { readonly routed: RoutedDecision; readonly number: number },
): PlannedAttempt | null | Promise<PlannedAttempt | null> {
  const snapshot = context.budgets.current();
  return snapshot instanceof Promise
    ? orUnavailable(snapshot).then((read) => planWithin(context, call, { ...plan, snapshot: read }))
    : planWithin(context, call, { ...plan, snapshot });
}

function planWithin(
  context: GatewayContext,
  call: PreparedCall,
  {
    routed,
    number,
    snapshot,
  }: {
    readonly routed: RoutedDecision;
    readonly number: number;
    readonly snapshot: BudgetSnapshot;
  },
): PlannedAttempt | null {
  const { route, decision, price, modelFacts, inputTokens } = routed;
  const { model, connection } = route;
  // The first attempt starts at the time of its decision, so a store can keep both together.
  const at = number === 1 ? decision.at : context.clock.now();
  const { holds, rates, needsPrice, capsOutput } = routed.cached.holdsFor(snapshot, at);
  const cap = meet.maxOutputTokens(decision, outputCap(context, modelFacts, call));
  const auto = route.provider.billing?.autoTiers ?? [];
  const { request, serviceTiers } = meet.serviceTier(decision, routed.request, auto);
  const basis = { price, serviceTiers, estimatedInputTokens: inputTokens };
  const estimates = estimatesOf(basis, cap.tokens);
  const isUnpriced = estimates.usd === null && needsPrice;
  if (isUnpriced && (call.claim === null || number > 1)) return null;
  return {
    routed,
    request: cap.isRequired || capsOutput ? { ...request, maxOutputTokens: cap.tokens } : request,
    attempt: {
      number,
      decisionId: decision.id,
      gateway: model.gateway,
      vendor: model.vendor,
      model: model.model,
      connection,
      price,
      serviceTiers,
      estimatedInputTokens: inputTokens,
      estimatedOutputTokens: cap.tokens,
      outputCapFrom: cap.from,
      reasons: modelFacts.reasons === true,
      startedAt: at,
    },
    holds: holdsOf(holds, rates, estimates, at),
    rates,
    // A repeat gets its answer without a price. The store refuses any other request, because no budgets have this version.
    budgetsVersion: isUnpriced ? -1 : snapshot.version,
  };
}

/** Rate limits come first, because an error names the first hold that does not fit. */
function holdsOf(
  holds: readonly Hold[],
  rates: readonly RateTemplate[],
  estimates: Estimates,
  at: number,
): readonly Hold[] {
  const held = withAmounts(holds, estimates);
  return rates.length === 0
    ? held
    : [...rates.map((rate) => rateHold(rate, estimates, at)), ...held];
}

/**
 * The refused call with a new time, if the rate limit that refused it allows it by now; otherwise null. A call that waits
 * for the store is not rejected because of later ones that overtook it.
 */
export function planAgain(
  context: GatewayContext,
  call: PreparedCall,
  {
    planned: { routed },
    refused,
    round,
  }: { readonly planned: PlannedAttempt; readonly refused: RefusedHold; readonly round: number },
): PlannedAttempt | null | Promise<PlannedAttempt | null> {
  const at = context.clock.now();
  if (round >= maxFittings || !fitsAt(refused, at)) return null;
  const decided = { ...routed, decision: { ...routed.decision, at } };
  return planAttempt(context, call, { routed: decided, number: 1 });
}

/** After this many rounds of fitting the cap to the remaining budget, the smallest cap is used. */
const maxFittings = 8;

/**
 * Lowers the output cap to the remaining budget, but not below `limits.maxOutputTokens`. Null if that doesn't fit either,
 * if the client set a cap, or if the hold doesn't count output. Concurrent calls may use up the remainder meanwhile, so
 * after some rounds it goes straight to the smallest cap.
 */
export function fitToBudget(
  context: GatewayContext,
  call: PreparedCall,
  {
    planned,
    refused: { hold, left },
    round,
  }: { readonly planned: PlannedAttempt; readonly refused: RefusedHold; readonly round: number },
): PlannedAttempt | null {
  const { unit } = hold;
  if (call.request.maxOutputTokens !== undefined || unit === "requests" || !isBudgetUnit(unit))
    return null;
  const { attempt, rates } = planned;
  const { startedAt: at } = attempt;
  const fits = (output: number): boolean => (estimatesOf(attempt, output)[unit] ?? 0) <= left;
  const max = attempt.estimatedOutputTokens;
  const min = Math.min(context.limits.maxOutputTokens, max);
  if (min === max || hold.limit === 0 || !fits(min)) return null;
  const output = round < maxFittings ? largest(min, max, fits) : min;
  return {
    ...planned,
    request: { ...planned.request, maxOutputTokens: output },
    attempt: { ...attempt, estimatedOutputTokens: output, outputCapFrom: "budget" },
    holds: holdsOf(planned.holds.slice(rates.length), rates, estimatesOf(attempt, output), at),
  };
}

/** The largest whole number that is good, by bisection. `low` must be good and `high` must not. */
function largest(low: number, high: number, isGood: (value: number) => boolean): number {
  let [good, bad] = [low, high];
  while (bad - good > 1) {
    const middle = Math.floor((good + bad) / 2);
    if (isGood(middle)) good = middle;
    else bad = middle;
  }
  return good;
}

/** The price of a model. If the host's price book fails, the price is unknown, which is not zero. */
export function priceOf(
  context: Pick<GatewayContext, "prices" | "notify">,
  { model }: Pick<ModelRoute, "model">,
  at: number,
): Price | null {
  try {
    const price = context.prices.priceOf(model, at);
    if (price === null || isPrice(price)) return price;
  } catch {
    // Reported below, like an invalid price.
  }
  context.notify({ type: "gateway.degraded", at, what: "prices" });
  return null;
}

/** More than any model writes, and small enough to keep sums and costs exact. */
const absoluteMaxOutputTokens = 2_147_483_647;

/** Embeddings have no output tokens. */
const noOutput: OutputCap = { tokens: 0, from: "model", isRequired: false };

/** The smaller of the client's and the model's cap. If the model states none, `limits.maxOutputTokens` counts. */
function outputCap(
  context: GatewayContext,
  { maxOutputTokens: stated }: ModelFacts,
  { embedding, request: { maxOutputTokens: requested } }: PreparedCall,
): OutputCap {
  if (embedding !== undefined) return noOutput;
  const max =
    stated === null ? context.limits.maxOutputTokens : Math.min(stated, absoluteMaxOutputTokens);
  if (requested !== undefined && requested < max)
    return { tokens: requested, from: "client", isRequired: false };
  return { tokens: max, from: stated === null ? "limit" : "model", isRequired: false };
}

/** The upper estimate of an attempt in each unit. */
function estimatesOf(
  {
    price,
    serviceTiers,
    estimatedInputTokens: promptTokens,
  }: Pick<AttemptStart, "price" | "serviceTiers" | "estimatedInputTokens">,
  output: number,
): Estimates {
  const held = { promptTokens, completionTokens: output };
  return {
    usd: price && maxCost(held, price, serviceTiers),
    tokens: promptTokens + output,
    requests: 1,
  };
}

/** The most sensitive data class recorded in the Session that the call continues; null for a new Session. */
export function sessionClassOf(
  { dataClasses }: GatewayContext,
  { state }: PreparedCall,
): string | null {
  return highestClass(dataClasses, state.continued?.session?.dataClasses ?? []);
}

function factsOf(
  { caller, request, embedding }: PreparedCall,
  {
    route: { model, listed, connection },
    dataClass,
    session,
    size,
    estimated,
  }: {
    readonly route: ModelRoute;
    readonly dataClass: string;
    readonly session: string | null;
    readonly size: MessagesSize;
    readonly estimated: {
      readonly input: number;
      readonly output: number;
      readonly cost: number | null;
    };
  },
): PolicyFacts {
  const facts: PolicyFacts = {
    organization: caller.organizationId,
    user: caller.userId,
    key: caller.keyId,
    source: caller.source,
    dataClass,
    gateway: model.gateway,
    vendor: model.vendor,
    model: model.model,
    listed,
    connection,
    tools: (request.tools?.length ?? 0) > 0,
    images: size.images > 0,
    structuredOutput:
      request.responseFormat !== undefined && request.responseFormat.type !== "text",
    serviceTier: tierOf(request.serviceTier),
    estimatedInputTokens: estimated.input,
    estimatedOutputTokens: estimated.output,
    estimatedCostNanoUsd: estimated.cost,
  };
  if (request.store === undefined && session === null && embedding === undefined) return facts;
  return {
    ...facts,
    ...(embedding === undefined ? {} : { embeddings: true }),
    ...(request.store === undefined ? {} : { store: request.store }),
    ...(session === null ? {} : { session: { dataClass: session } }),
  };
}

/** Whether the caller can reach a gateway. A customer-owned gateway needs the organization's own Gateway API key. */
export function isConnected(
  { credentials }: GatewayContext,
  { organizationId }: Caller,
  { gateway, connection }: { readonly gateway: string; readonly connection: ConnectionOwnership },
): boolean | Promise<boolean> {
  return connection === "platform" || orUnavailable(credentials.has({ organizationId, gateway }));
}
