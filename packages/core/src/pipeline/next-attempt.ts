import { mayFallBack, mayRetry, retryWait } from "../attempts/retry.ts";
import { ProviderError } from "../contracts/provider.ts";
import type { AttemptIntent, AttemptSettlement, RefusedHold } from "../contracts/step-verbs.ts";
import type { Hold } from "../domain/budget.ts";
import type { DecisionRefusal, PolicyDecision } from "../domain/policy-decision.ts";
import { attemptLeaf } from "../evidence/leaves.ts";
import { sleep } from "../kernel/clock.ts";
import type { ClientClosed, StepRun } from "./attempt.ts";
import type { GatewayContext } from "./context.ts";
import { evidenceUnavailable, orUnavailable } from "./durable.ts";
import { isConnected } from "./is-connected.ts";
import {
  decideRoute,
  fitToBudget,
  lacksAccount,
  type PlannedAttempt,
  planAttempt,
} from "./plan-attempt.ts";
import { recordRefusal, refusedByBudget, refusedByPrice } from "./refuse.ts";
import { meterRunning } from "./settle.ts";
import { retryUnknownOutcome } from "./surely.ts";

/**
 * The attempt to make after one failed: the same model again, then the policy's fallbacks, each decided and held anew.
 * @throws the failure itself when there is nothing left to try, the client left, or it has seen a part of the answer.
 */
export async function nextAttempt(
  context: GatewayContext,
  run: StepRun,
  failure: ClientClosed | ProviderError,
): Promise<PlannedAttempt> {
  if (
    !(failure instanceof ProviderError) ||
    run.stopReason !== null ||
    run.isAbandoned ||
    run.attempt.firstTokenAt !== null
  )
    throw failure;
  const planned =
    (await retrySameModel(context, run, failure)) ?? (await fallback(context, run, failure));
  if (planned === null) throw failure;
  return planned;
}

async function retrySameModel(
  context: GatewayContext,
  run: StepRun,
  failure: ProviderError,
): Promise<PlannedAttempt | null> {
  const retry = run.retries;
  if (!mayRetry(failure, context.retry) || retry >= context.retry.max) return null;
  const spread = (context.ids.bytes(1)[0] ?? 0) / 255;
  const wait = retryWait(failure, context.retry, { retry, spread });
  if (wait === null) return null;
  await sleep(context.clock, wait, run.attempt.signal);
  run.retries++;
  const again = await candidateAgain(context, run, failure);
  if (again === null) return null;
  const opened = await open(context, run, { planned: again, failure, decision: null });
  return "hold" in opened ? null : opened;
}

/** With the holds it has; where these were spent, with new ones on the budgets as they are now. */
async function candidateAgain(
  context: GatewayContext,
  run: StepRun,
  failure: ProviderError,
): Promise<PlannedAttempt | null> {
  const { planned } = run.attempt;
  const number = planned.attempt.number + 1;
  if (!isFree(endedBy(context, run, failure))) {
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
  failure: ProviderError,
): Promise<PlannedAttempt | null> {
  if (!mayFallBack(failure, context.retry)) return null;
  for (let model = run.fallbacks.shift(); model !== undefined; model = run.fallbacks.shift()) {
    const planned = await permittedFallback(context, run, model);
    if (planned === null) continue;
    const { decision } = planned.routed;
    const opened = await open(context, run, { planned, failure, decision });
    if (!("hold" in opened)) {
      run.retries = 0;
      return opened;
    }
    const refusal = refusedByBudget(opened);
    await recordRefusal(context, run.call.caller, { decision, refusal });
  }
  return null;
}

/** A fallback that is denied, cannot be priced, or lacks the organization's own key is recorded and skipped; one that leads nowhere is only skipped. */
async function permittedFallback(
  context: GatewayContext,
  run: StepRun,
  model: string,
): Promise<PlannedAttempt | null> {
  const route = context.router.find(model);
  if (route === null) return null;
  const { dataClass, decision: first } = run.opened.planned.routed;
  const routed = decideRoute(context, run.call, { route, dataClass, first });
  const number = run.attempt.planned.attempt.number + 1;
  const { decision } = routed;
  const skipped = async (refusal: DecisionRefusal | null): Promise<null> => {
    await recordRefusal(context, run.call.caller, { decision, refusal });
    return null;
  };
  if (decision.effect === "deny") return skipped(null);
  const { gateway } = route.model;
  await orUnavailable(context.budgets.reload());
  const isOpen =
    !lacksAccount(routed) &&
    (await isConnected(context, run.call.caller, { gateway, connection: route.connection }));
  if (!isOpen) return skipped({ by: "connection" });
  return (
    (await planAttempt(context, run.call, { routed, number })) ?? skipped(refusedByPrice(routed))
  );
}

/** A request counts once per counter, whatever number of attempts it takes. */
function newHolds({ held }: StepRun, planned: PlannedAttempt): readonly Hold[] {
  return planned.holds.filter(
    (hold) => hold.unit !== "requests" || !held.some((earlier) => isSameCounter(earlier, hold)),
  );
}

function isSameCounter(one: Hold, other: Hold): boolean {
  return (
    one.budgetId === other.budgetId &&
    one.subject === other.subject &&
    one.periodStart === other.periodStart
  );
}

interface FurtherAttempt {
  readonly planned: PlannedAttempt;
  readonly failure: ProviderError;
  /** The decision on a fallback; null for the same model again. */
  readonly decision: PolicyDecision | null;
}

/** Opens a further attempt; where its budgets do not have room for its output, with less of it; else says what refused. */
async function open(
  context: GatewayContext,
  run: StepRun,
  further: FurtherAttempt,
): Promise<PlannedAttempt | RefusedHold> {
  let { planned } = further;
  for (let round = 0; ; round++) {
    const refused = await tryToOpen(context, run, { ...further, planned });
    if (refused === null) return planned;
    const next = fitToBudget(context, run.call, { planned, refused, round });
    if (next === null) {
      const { organizationId } = run.opened.owner;
      const { budgetId } = refused.hold;
      context.notify({
        type: "budget.exhausted",
        at: context.clock.now(),
        organizationId,
        budgetId,
      });
      return refused;
    }
    planned = next;
  }
}

function endedBy(context: GatewayContext, run: StepRun, failure: ProviderError): AttemptSettlement {
  return meterRunning(context, run, { outcome: "failed", reason: failure.reason }, failure);
}

function isFree({ charge }: AttemptSettlement): boolean {
  return charge.usd === 0 && charge.tokens === 0;
}

/** What an attempt that cost nothing held goes on to the next of the same model; what it did cost is not there twice. */
async function tryToOpen(
  context: GatewayContext,
  run: StepRun,
  { planned, failure, decision }: FurtherAttempt,
): Promise<RefusedHold | null> {
  const ended = endedBy(context, run, failure);
  const holds = decision === null && isFree(ended) ? null : newHolds(run, planned);
  const intent: Omit<AttemptIntent, "leaf"> = {
    organizationId: run.opened.owner.organizationId,
    stepId: run.opened.answer.stepId,
    at: context.clock.now(),
    ended,
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
