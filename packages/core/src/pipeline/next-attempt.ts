import { mayFallBack, mayRetry, retryWait } from "../attempts/retry.ts";
import { ProviderError } from "../contracts/provider.ts";
import type { AttemptIntent, AttemptSettlement, RefusedHold } from "../contracts/step-verbs.ts";
import type { Hold } from "../domain/budget.ts";
import type { DecisionRefusal, PolicyDecision } from "../domain/policy-decision.ts";
import { attemptLeaf } from "../evidence/leaves.ts";
import { sleep } from "../kernel/clock.ts";
import type { ClientClosed, Run } from "./attempt.ts";
import { type Candidate, decideOn, fitted, lacksAccount, planAttempt } from "./candidate.ts";
import { durable, evidenceUnavailable } from "./durable.ts";
import { isConnected } from "./is-connected.ts";
import type { Line } from "./line.ts";
import { recordRefusal, refusedByBudget, refusedByPrice } from "./refuse.ts";
import { meterRunning } from "./settle.ts";
import { surely } from "./surely.ts";

/**
 * The attempt to make after one failed: the same model again, then the policy's fallbacks, each decided and held anew.
 * @throws the failure itself when there is nothing left to try, the client left, or it has seen a part of the answer.
 */
export async function nextAttempt(
  line: Line,
  run: Run,
  failure: ClientClosed | ProviderError,
): Promise<Candidate> {
  if (
    !(failure instanceof ProviderError) ||
    run.stopReason !== null ||
    run.isAbandoned ||
    run.attempt.firstTokenAt !== null
  )
    throw failure;
  const candidate = (await sameAgain(line, run, failure)) ?? (await fallback(line, run, failure));
  if (candidate === null) throw failure;
  return candidate;
}

async function sameAgain(line: Line, run: Run, failure: ProviderError): Promise<Candidate | null> {
  const retry = run.retries;
  if (!mayRetry(failure, line.retry) || retry >= line.retry.most) return null;
  const spread = (line.ids.bytes(1)[0] ?? 0) / 255;
  const wait = retryWait(failure, line.retry, { retry, spread });
  if (wait === null) return null;
  await sleep(line.clock, wait, run.attempt.signal);
  run.retries++;
  const again = await candidateAgain(line, run, failure);
  if (again === null) return null;
  const opened = await open(line, run, { candidate: again, failure, decision: null });
  return "hold" in opened ? null : opened;
}

/** With the holds it has; where these were spent, with new ones on the budgets as they are now. */
async function candidateAgain(
  line: Line,
  run: Run,
  failure: ProviderError,
): Promise<Candidate | null> {
  const { candidate } = run.attempt;
  const number = candidate.attempt.number + 1;
  if (!isFree(endedBy(line, run, failure))) {
    await durable(line.budgets.reload());
    return planAttempt(line, run.call, { decided: candidate.decided, number });
  }
  return {
    ...candidate,
    attempt: { ...candidate.attempt, number, startedAt: line.clock.now() },
  };
}

async function fallback(line: Line, run: Run, failure: ProviderError): Promise<Candidate | null> {
  if (!mayFallBack(failure, line.retry)) return null;
  for (let model = run.fallbacks.shift(); model !== undefined; model = run.fallbacks.shift()) {
    const candidate = await permittedFallback(line, run, model);
    if (candidate === null) continue;
    const { decision } = candidate.decided;
    const opened = await open(line, run, { candidate, failure, decision });
    if (!("hold" in opened)) {
      run.retries = 0;
      return opened;
    }
    const refusal = refusedByBudget(opened);
    await recordRefusal(line, run.call.caller, { decision, refusal });
  }
  return null;
}

/** A fallback that is denied, cannot be priced, or lacks the organization's own key is recorded and skipped; one that leads nowhere is only skipped. */
async function permittedFallback(line: Line, run: Run, model: string): Promise<Candidate | null> {
  const route = line.router.find(model);
  if (route === null) return null;
  const { dataClass, decision: first } = run.opened.candidate.decided;
  const decided = decideOn(line, run.call, { route, dataClass, first });
  const number = run.attempt.candidate.attempt.number + 1;
  const { decision } = decided;
  const skipped = async (refusal: DecisionRefusal | null): Promise<null> => {
    await recordRefusal(line, run.call.caller, { decision, refusal });
    return null;
  };
  if (decision.effect === "deny") return skipped(null);
  const { gateway } = route.model;
  await durable(line.budgets.reload());
  const isOpen =
    !lacksAccount(decided) &&
    (await isConnected(line, run.call.caller, { gateway, connection: route.connection }));
  if (!isOpen) return skipped({ by: "connection" });
  return (
    (await planAttempt(line, run.call, { decided, number })) ?? skipped(refusedByPrice(decided))
  );
}

/** A request counts once per counter, whatever number of attempts it takes. */
function newHolds({ held }: Run, candidate: Candidate): readonly Hold[] {
  return candidate.holds.filter(
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

interface Further {
  readonly candidate: Candidate;
  readonly failure: ProviderError;
  /** The decision on a fallback; null for the same model again. */
  readonly decision: PolicyDecision | null;
}

/** Opens a further attempt; where its budgets do not have room for its output, with less of it; else says what refused. */
async function open(line: Line, run: Run, further: Further): Promise<Candidate | RefusedHold> {
  let { candidate } = further;
  for (let round = 0; ; round++) {
    const refused = await tryToOpen(line, run, { ...further, candidate });
    if (refused === null) return candidate;
    const next = fitted(line, run.call, { candidate, refused, round });
    if (next === null) {
      const { organizationId } = run.opened.owner;
      const { budgetId } = refused.hold;
      line.notify({ type: "budget.exhausted", at: line.clock.now(), organizationId, budgetId });
      return refused;
    }
    candidate = next;
  }
}

function endedBy(line: Line, run: Run, failure: ProviderError): AttemptSettlement {
  return meterRunning(line, run, { outcome: "failed", reason: failure.reason }, failure);
}

function isFree({ charge }: AttemptSettlement): boolean {
  return charge.usd === 0 && charge.tokens === 0;
}

/** What an attempt that cost nothing held goes on to the next of the same model; what it did cost is not there twice. */
async function tryToOpen(
  line: Line,
  run: Run,
  { candidate, failure, decision }: Further,
): Promise<RefusedHold | null> {
  const ended = endedBy(line, run, failure);
  const holds = decision === null && isFree(ended) ? null : newHolds(run, candidate);
  const intent: Omit<AttemptIntent, "leaf"> = {
    organizationId: run.opened.owner.organizationId,
    stepId: run.opened.answer.stepId,
    at: line.clock.now(),
    ended,
    decision,
    attempt: candidate.attempt,
    holds,
  };
  const whole = { ...intent, leaf: attemptLeaf(line.ids.uuid(), intent) };
  const result = await durable(surely(line.clock, () => line.store.openAttempt(whole)));
  if (result.opened) {
    run.ended.push(intent.ended);
    run.held.push(...(holds ?? []));
    return null;
  }
  if (result.hold === null)
    throw evidenceUnavailable(new Error("the Step was settled by recovery"));
  return result;
}
