import { mayFallBack, mayRetry, retryWait } from "../attempts/retry.ts";
import { ProviderError } from "../contracts/provider.ts";
import type { AttemptIntent, AttemptSettlement, RefusedHold } from "../contracts/step-verbs.ts";
import { type Hold, isBudgetUnit } from "../domain/budget.ts";
import { formatModelId } from "../domain/model-id.ts";
import type { DecisionRefusal, PolicyDecision } from "../domain/policy-decision.ts";
import { attemptLeaf } from "../evidence/leaves.ts";
import type { ModelRoute } from "../routing/route.ts";
import type { ClientClosed, StepRun } from "./attempt.ts";
import type { GatewayContext } from "./context.ts";
import { mayReplace } from "./embedding.ts";
import { meet } from "./obligations.ts";
import { exhausted, recordDecisions, refusedByHold, refusedByPrice } from "./open-step.ts";
import {
  decideRoute,
  fitToBudget,
  isConnected,
  type PlannedAttempt,
  planAttempt,
} from "./plan-attempt.ts";
import { evidenceUnavailable, orUnavailable, retryUnknownOutcome } from "./store-calls.ts";

/**
 * The next attempt after a failure: the same model again, then the policy's fallbacks, each with its own decision and
 * holds.
 * @throws the failure itself if nothing is left to try, the client left, or it has seen part of the answer
 */
export async function nextAttempt(
  context: GatewayContext,
  run: StepRun,
  { failure, settlement }: FailedAttempt<ClientClosed | ProviderError>,
): Promise<PlannedAttempt> {
  if (
    !(failure instanceof ProviderError) ||
    run.stopReason !== null ||
    run.isAbandoned ||
    run.attempt.firstTokenAt !== null
  )
    throw failure;
  const failed = { failure, settlement };
  const planned =
    (await retrySameModel(context, run, failed)) ?? (await fallback(context, run, failed));
  if (planned === null) throw failure;
  return planned;
}

/** An attempt that failed, and its record. */
interface FailedAttempt<Failure = ProviderError> {
  readonly failure: Failure;
  readonly settlement: AttemptSettlement;
}

async function retrySameModel(
  context: GatewayContext,
  run: StepRun,
  { failure, settlement }: FailedAttempt,
): Promise<PlannedAttempt | null> {
  const retry = run.retries;
  if (!mayRetry(failure, context.retry) || retry >= context.retry.max) return null;
  if (isBroken(context, run, run.attempt.planned.routed.route)) return null;
  const spread = (context.ids.bytes(1)[0] ?? 0) / 255;
  const wait = retryWait(failure, context.retry, { retry, spread });
  if (wait === null) return null;
  await run.pause(wait);
  if (run.stopReason !== null) throw run.stopReason;
  run.retries++;
  const again = await sameAttemptAgain(context, run, settlement);
  if (again === null) return null;
  const opened = await openAttempt(context, run, { planned: again, settlement, decision: null });
  return "hold" in opened ? null : opened;
}

/** The same attempt again. It takes over the holds, or gets new ones if the failed attempt used them up. */
async function sameAttemptAgain(
  context: GatewayContext,
  run: StepRun,
  settlement: AttemptSettlement,
): Promise<PlannedAttempt | null> {
  const { planned } = run.attempt;
  const number = planned.attempt.number + 1;
  if (!isFree(settlement)) {
    await orUnavailable(context.budgets.reload());
    return planAttempt(context, run.call, { routed: planned.routed, number });
  }
  return {
    ...planned,
    attempt: { ...planned.attempt, number, startedAt: context.clock.now() },
  };
}

async function fallback(
  context: GatewayContext,
  run: StepRun,
  { failure, settlement }: FailedAttempt,
): Promise<PlannedAttempt | null> {
  if (!mayFallBack(failure, context.retry)) return null;
  const { selection } = run.call;
  const { attempt } = run.attempt.planned;
  selection?.passOver(formatModelId(attempt), failure.reason, attempt.decisionId);
  for (let model = run.fallbacks.shift(); model !== undefined; model = run.fallbacks.shift()) {
    const planned = await permittedFallback(context, run, model);
    if (planned === null) continue;
    const { decision } = planned.routed;
    const opened = await openAttempt(context, run, { planned, settlement, decision });
    if (!("hold" in opened)) {
      run.retries = 0;
      return opened;
    }
    const refusal = refusedByHold(planned, opened);
    selection?.passOver(model, refusal.by, decision.id);
    await recordDecisions(context, run.call.caller, [{ decision, refusal }]);
  }
  return null;
}

/** Whether the breaker of a model is open. */
function isBroken({ upstreams }: GatewayContext, { call }: StepRun, route: ModelRoute): boolean {
  const upstream = upstreams?.get(route.model.gateway);
  return upstream?.declines(route, call.caller.organizationId) ?? false;
}

/**
 * A fallback that is denied, has no price, or lacks the organization's own key is recorded and skipped. An unknown model, one
 * whose breaker is open, or another model than the embeddings are of, is only skipped.
 */
async function permittedFallback(
  context: GatewayContext,
  run: StepRun,
  model: string,
): Promise<PlannedAttempt | null> {
  const route = context.router.find(model);
  const { dataClass, decision: first, route: replaced } = run.opened.planned.routed;
  const { selection, embedding } = run.call;
  if (route === null || !mayReplace(route, replaced, embedding)) return null;
  if (isBroken(context, run, route)) {
    selection?.passOver(model, "breaker_open", null);
    return null;
  }
  const routed = decideRoute(context, run.call, { route, dataClass, first });
  const number = run.attempt.planned.attempt.number + 1;
  const { decision } = routed;
  const skipped = async (refusal: DecisionRefusal | null): Promise<null> => {
    selection?.passOver(model, refusal?.by ?? "policy", decision.id);
    await recordDecisions(context, run.call.caller, [{ decision, refusal }]);
    return null;
  };
  if (decision.effect === "deny") return skipped(null);
  const { connection } = route;
  const { gateway } = route.model;
  await orUnavailable(context.budgets.reload());
  const isOpen =
    meet.connection(decision, connection) &&
    (await isConnected(context, run.call.caller, { gateway, connection }));
  if (!isOpen) return skipped({ by: "connection" });
  return (
    (await planAttempt(context, run.call, { routed, number })) ?? skipped(refusedByPrice(routed))
  );
}

/** A request counts once, however many attempts it takes, and even if a new period has begun. */
function newHolds({ held }: StepRun, planned: PlannedAttempt): readonly Hold[] {
  return planned.holds.filter(
    (hold) =>
      (hold.unit !== "requests" && hold.unit !== "requests_pace") ||
      !held.some(({ budgetId, subject }) => budgetId === hold.budgetId && subject === hold.subject),
  );
}

interface FurtherAttempt {
  readonly planned: PlannedAttempt;
  /** The record of the attempt that failed. */
  readonly settlement: AttemptSettlement;
  /** The decision on a fallback; null for a retry of the same model. */
  readonly decision: PolicyDecision | null;
}

/**
 * Opens a further attempt, with less output if the budgets require it. Returns the refused hold if even that doesn't fit.
 */
async function openAttempt(
  context: GatewayContext,
  run: StepRun,
  further: FurtherAttempt,
): Promise<PlannedAttempt | RefusedHold> {
  let { planned } = further;
  for (let round = 0; ; round++) {
    const refused = await tryToOpenAttempt(context, run, { ...further, planned });
    if (refused === null) return planned;
    const next = fitToBudget(context, run.call, { planned, refused, round });
    if (next === null) {
      const { organizationId } = run.opened.owner;
      const at = context.clock.now();
      if (isBudgetUnit(refused.hold.unit))
        context.notify(exhausted(refused.hold, { at, organizationId }));
      return refused;
    }
    planned = next;
  }
}

function isFree({ charge }: AttemptSettlement): boolean {
  return charge.usd === 0 && charge.tokens === 0;
}

/** Tries to open once. A retry takes over the holds of an attempt that cost nothing. Otherwise it needs new ones. */
async function tryToOpenAttempt(
  context: GatewayContext,
  run: StepRun,
  { planned, settlement, decision }: FurtherAttempt,
): Promise<RefusedHold | null> {
  const holds = decision === null && isFree(settlement) ? null : newHolds(run, planned);
  const intent: Omit<AttemptIntent, "leaf"> = {
    organizationId: run.opened.owner.organizationId,
    stepId: run.opened.answer.stepId,
    at: context.clock.now(),
    ended: settlement,
    decision,
    attempt: planned.attempt,
    holds,
  };
  const whole = { ...intent, leaf: attemptLeaf(context.ids.uuid(), intent) };
  const result = await orUnavailable(
    retryUnknownOutcome(context.clock, () => context.store.openAttempt(whole)),
  );
  if (result.opened) {
    run.ended.push(intent.ended);
    run.held.push(...(holds ?? []));
    return null;
  }
  if (result.hold === null)
    throw evidenceUnavailable(new Error("the Step was settled by recovery"));
  return result;
}
