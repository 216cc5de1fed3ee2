import { meterAttempt } from "../attempts/meter-attempt.ts";
import { limitInForce } from "../budgets/limit-in-force.ts";
import type { TrackedCounter } from "../budgets/thresholds.ts";
import { type Provider, ProviderError } from "../contracts/provider.ts";
import type {
  AttemptSettlement,
  ClaimEnding,
  CommittedContent,
  SettleStepResult,
  StepReply,
  StepSettlement,
} from "../contracts/step-verbs.ts";
import { type Hold, isBudgetUnit } from "../domain/budget.ts";
import { type Completion, replyMessage, textOfKind, withState } from "../domain/completion.ts";
import type { FinishReason } from "../domain/completion-event.ts";
import { formatModelId } from "../domain/model-id.ts";
import { stateOrigin } from "../domain/provider-state.ts";
import { sumsOf } from "../domain/step-sums.ts";
import type { Usage } from "../domain/usage.ts";
import { GatewayError, toGatewayError } from "../errors/gateway-error.ts";
import { settledLeaf } from "../evidence/leaves.ts";
import { claimExpiry, keepsAnswers } from "../idempotency/claim.ts";
import { isLarge, yieldToEventLoop } from "../kernel/event-loop.ts";
import { sealBundle, sealCompletion } from "../sessions/provider-state.ts";
import { extendByReply } from "../sessions/transcript-chain.ts";
import { type ClientClosed, hasWorked, type StepRun, seenOf } from "./attempt.ts";
import type { GatewayContext } from "./context.ts";
import type { PreparedCall, SettledAnswer } from "./governed-call.ts";
import { meet } from "./obligations.ts";
import { committed, type OpenedStep } from "./open-step.ts";
import type { PlannedAttempt } from "./plan-attempt.ts";
import { evidenceUnavailable, retryWrite } from "./store-calls.ts";

const completed: Outcome = { outcome: "completed", reason: null };

/**
 * Settles a completed Step. Only after that may its answer be shown as complete. If settling fails, recovery takes over and
 * observers are notified.
 */
export async function settleCompleted(
  context: GatewayContext,
  run: StepRun,
  finishReason: FinishReason,
): Promise<void> {
  let settled: SettledAnswer;
  try {
    const answered = run.attempt.fold.completion();
    const attempt = meterRunning(run, completed);
    settled = settledAnswer(context, run, { answered, finishReason, usage: attempt.usage });
    fixOutcome(run);
    if (context.isObserved()) run.attemptEnded(attempt);
    const isLong = isLarge(run.attempt.fold.outputBytes());
    if (isLong) await yieldToEventLoop();
    const concluding = run.call.conclude(run.opened.answer, settled, (reply) =>
      keepsContent(run) ? withState(reply, answered, originOf(run)) : reply,
    );
    const { reply, response } = concluding instanceof Promise ? await concluding : concluding;
    const { chain } = run.opened;
    const extension = chain && extendByReply(chain, reply, run.call.caller.salt);
    if (isLong) await yieldToEventLoop();
    const content = extension && Buffer.from(JSON.stringify(extension.messages));
    if (content !== null && isLarge(content.length)) await yieldToEventLoop();
    await settle(context, run, {
      ...completed,
      attempt,
      finishReason,
      reply: content && {
        ...committed(context, content, keepsContent(run)),
        chain: extension.values,
      },
      reasoning: shownReasoning(context, run, answered),
      response,
      claim: run.call.claim && completedClaim(run, settled),
    });
    if (isLong) await yieldToEventLoop();
  } catch (thrown) {
    if (run.isEnding) leaveToRecovery(context, run);
    run.unsettled(afterAnswer(thrown));
    return;
  }
  run.completed(settled);
}

/** The provider has answered, so a retry would pay for a second answer. */
function afterAnswer(thrown: unknown): GatewayError {
  const { code, status, message, cause } = toGatewayError(thrown);
  return new GatewayError(code, message, { status, cause, retry: false });
}

function settledAnswer(
  context: GatewayContext,
  run: StepRun,
  {
    answered,
    finishReason,
    usage,
  }: {
    readonly answered: Completion;
    readonly finishReason: FinishReason;
    readonly usage: Usage;
  },
): SettledAnswer {
  const { seal } = run.call.state;
  const origin = originOf(run);
  return {
    completion: sealCompletion(answered, origin, seal),
    sealedState: () => sealBundle(answered, origin, seal),
    finishReason,
    usage,
    settledAt: context.clock.now(),
  };
}

function originOf({ attempt }: StepRun): string {
  return stateOrigin(attempt.planned.attempt);
}

/**
 * Settles a failed or cancelled Step. Its partial answer and usage stay on the Step, and the Session doesn't change. If
 * settling fails, recovery takes over and observers are notified.
 */
export async function settleEnded(
  context: GatewayContext,
  run: StepRun,
  ended: { readonly failure: ClientClosed | ProviderError; readonly attempt: AttemptSettlement },
): Promise<void> {
  fixOutcome(run);
  try {
    const { failure, attempt } = ended;
    const partial = run.attempt.fold.completion();
    await settle(context, run, {
      ...outcomeOf(run, failure),
      attempt,
      finishReason: run.isAbandoned ? partial.finishReason : null,
      reply: partialReply(context, run, partial),
      reasoning: shownReasoning(context, run, partial),
      response: null,
      claim: run.call.claim && endedClaim(context, run),
    });
  } catch {
    leaveToRecovery(context, run);
  }
}

/** Whether a call's answer may be kept for repeats of the request. */
export function isAnswerKept(
  { retention, deadlines }: GatewayContext,
  { claim, request }: PreparedCall,
  { planned }: OpenedStep,
): boolean {
  if (claim === null || request.store === false) return false;
  return keeps(planned) && keepsAnswers(retention, deadlines.total);
}

function completedClaim(run: StepRun, settled: SettledAnswer): ClaimEnding {
  const expiresAt = claimExpiry(settled.settledAt);
  const answer = keepsContent(run) ? run.keep(settled) : null;
  if (answer === null) return { state: "not_kept", expiresAt };
  const model = formatModelId(run.attempt.planned.attempt);
  return { state: "kept", expiresAt, answer: { ...answer, model } };
}

/** A repeat may run again only if no provider can have completed the request. */
function endedClaim({ clock }: GatewayContext, { isUnsure }: StepRun): ClaimEnding {
  if (!isUnsure) return { state: "freed" };
  return { state: "interrupted", expiresAt: claimExpiry(clock.now()) };
}

/** Statuses with which a proxy gives up on a provider that may still be running the call. */
const proxyGaveUp: ReadonlySet<number | null> = new Set([408, 502, 504, 520, 521, 522, 523, 524]);

/** Whether a failed attempt may have run at its provider. */
export function isUnsure(
  { attempt }: Pick<StepRun, "attempt">,
  failure: ClientClosed | ProviderError,
): boolean {
  if (attempt.host === null) return false;
  if (!(failure instanceof ProviderError) || failure.delivery === "unknown") return true;
  return failure.delivery === "answered" && proxyGaveUp.has(failure.status);
}

/** Removes the Step from the lease, or recovery would never find it. */
function leaveToRecovery(context: GatewayContext, run: StepRun): void {
  run.opened.open.remove();
  context.notify({ type: "gateway.degraded", at: context.clock.now(), what: "settlement" });
}

/** The usage record of the running attempt after a failure. */
export function endedBy(run: StepRun, failure: ClientClosed | ProviderError): AttemptSettlement {
  return meterRunning(run, outcomeOf(run, failure), failure);
}

type Outcome = Pick<StepSettlement, "outcome" | "reason">;

/** How a failure ends an attempt, or its whole Step. */
function outcomeOf(
  { isAbandoned }: Pick<StepRun, "isAbandoned">,
  failure: ClientClosed | ProviderError,
): Outcome {
  return failure instanceof ProviderError && !isAbandoned
    ? { outcome: "failed", reason: failure.reason }
    : { outcome: "cancelled", reason: "client_closed" };
}

/** The usage record of the running attempt as it ends. */
function meterRunning(
  run: StepRun,
  ended: Outcome,
  failure: ClientClosed | ProviderError | null = null,
): AttemptSettlement {
  const { attempt, context } = run;
  const {
    host,
    bodySha256,
    providerRequestId,
    providerModel,
    toolCalls,
    firstTokenAt,
    startedAt,
    endedAt,
    fold,
  } = attempt;
  return meterAttempt(attempt.planned.attempt, ended, {
    host,
    bodySha256,
    providerRequestId,
    providerModel,
    usage: fold.usage(),
    reportedCostFactor: factorOf(attempt.planned.routed.route.provider),
    output: seenOf(attempt),
    toolCalls,
    durationMs: (endedAt ?? context.clock.monotonic()) - startedAt,
    timeToFirstTokenMs: firstTokenAt === null ? null : firstTokenAt - startedAt,
    nothingUsed:
      host === null ||
      (failure instanceof ProviderError && wasRefused(failure) && !hasWorked(attempt)),
    error: failure instanceof ProviderError ? errorOf(context, run, failure) : null,
  });
}

/** The text may quote the prompt, so it is kept only if the transcript is. */
function errorOf(
  context: GatewayContext,
  run: StepRun,
  { text }: ProviderError,
): CommittedContent | null {
  return text === null ? null : committed(context, Buffer.from(text), keepsContent(run));
}

const defaultFactor = 2;

/** How far the provider's reported cost may exceed the price table; null if it isn't trusted. */
function factorOf({ billing }: Provider): number | null {
  return billing?.reportedCost === "trust" ? (billing.reportedCostFactor ?? defaultFactor) : null;
}

/** Whether the provider was never reached, or answered with an error status. */
function wasRefused({ delivery, status }: ProviderError): boolean {
  return delivery === "not-sent" || (delivery === "answered" && status !== null && status >= 400);
}

type Ending = Pick<
  StepSettlement,
  "outcome" | "reason" | "attempt" | "finishReason" | "reply" | "reasoning" | "response" | "claim"
>;

/** From here on nothing can stop the run, even if writing its records takes long. */
function fixOutcome(run: StepRun): void {
  run.isEnding = true;
}

function settle(context: GatewayContext, run: StepRun, ending: Ending): Promise<void> {
  const settlement = settlementOf(context, run, ending);
  const { open } = run.opened;
  const write = () => context.store.settleStep(settlement);
  const startedAt = context.clock.monotonic();
  const written = (result: SettleStepResult, isRepeated: boolean): void => {
    // An earlier try may have settled it. Only recovery settles it with another outcome.
    if (!result.settled && !(isRepeated && result.outcome === settlement.outcome))
      throw evidenceUnavailable(new Error("the Step was settled by recovery"));
    open.remove();
    if (context.isObserved()) notifySettled(context, run, settlement, startedAt);
  };
  return write().then(
    (result) => written(result, false),
    (failure: unknown) =>
      retryWrite(context.clock, write, failure).then(
        (result) => written(result, true),
        (cause: unknown) => {
          throw evidenceUnavailable(cause);
        },
      ),
  );
}

function notifySettled(
  context: GatewayContext,
  run: StepRun,
  settlement: StepSettlement,
  writeStartedAt: number,
): void {
  const { at, organizationId, stepId, outcome, reason, finishReason, attempt } = settlement;
  const now = context.clock.monotonic();
  const attempts = [...run.ended, attempt];
  context.notify({
    type: "step.settled",
    at,
    requestId: run.call.requestId,
    organizationId,
    keyId: run.opened.owner.keyId,
    stepId,
    outcome,
    reason,
    ...sumsOf(attempts),
    attempts: attempts.length,
    model: formatModelId(run.attempt.planned.attempt),
    finishReason,
    durationMs: Math.round(now - run.startedAt),
    writeMs: Math.round(now - writeStartedAt),
  });
  // Warnings run in the background.
  void warnOfBudgets(context, run, attempts);
}

function settlementOf(
  context: GatewayContext,
  { opened }: StepRun,
  ending: Ending,
): StepSettlement {
  const settlement: Omit<StepSettlement, "leaf"> = {
    organizationId: opened.owner.organizationId,
    stepId: opened.answer.stepId,
    at: context.clock.now(),
    ...ending,
  };
  return { ...settlement, leaf: settledLeaf(context.ids.uuid(), settlement) };
}

/** Partial output of a failed or cancelled Step stays on the Step and never joins the Session. */
function partialReply(
  context: GatewayContext,
  run: StepRun,
  partial: Completion,
): StepReply | null {
  const message = replyMessage(partial);
  const isEmpty =
    message.content == null && message.refusal === undefined && message.tool_calls === undefined;
  if (isEmpty) return null;
  const content = Buffer.from(JSON.stringify([message]));
  return { ...committed(context, content, keepsContent(run)), chain: new Uint8Array() };
}

function shownReasoning(
  context: GatewayContext,
  run: StepRun,
  partial: Completion,
): CommittedContent | null {
  const text = textOfKind(partial, "reasoning");
  return text === null || text === ""
    ? null
    : committed(context, Buffer.from(text), keepsContent(run));
}

/** A fallback's answer is kept only if its own decision and the request's first one both allow it. */
function keepsContent({ opened, attempt }: StepRun): boolean {
  return keeps(opened.planned) && keeps(attempt.planned);
}

function keeps({ routed }: PlannedAttempt): boolean {
  return meet.transcript(routed.decision) === "full";
}

/**
 * Notifies observers of the budgets that reached a threshold with this Step. Runs after the settlement and can't fail it:
 * if the store does not answer, observers get no warning.
 */
async function warnOfBudgets(
  context: GatewayContext,
  run: StepRun,
  attempts: readonly AttemptSettlement[],
): Promise<void> {
  try {
    for (const hold of run.held) await warnOf(context, run, { hold, attempts });
  } catch {
    // The next Step on the same counter checks again.
  }
}

async function warnOf(
  context: GatewayContext,
  run: StepRun,
  { hold, attempts }: { readonly hold: Hold; readonly attempts: readonly AttemptSettlement[] },
): Promise<void> {
  const { unit } = hold;
  if (!isBudgetUnit(unit)) return;
  const counter = await counterOf(context, hold);
  const charged =
    unit === "requests" ? hold.amount : attempts.reduce((sum, { charge }) => sum + charge[unit], 0);
  if (!counter || !context.thresholds.charge(counter, charged, context.clock.now())) return;
  const settled = await settledOn(context, counter);
  // Its limit may have changed meanwhile.
  const now = await counterOf(context, hold);
  if (!now) return;
  const at = context.clock.now();
  for (const threshold of context.thresholds.newlyReached(now, settled, at))
    context.notify({
      type: "budget.warned",
      at,
      organizationId: run.opened.owner.organizationId,
      budgetId: hold.budgetId,
      subject: hold.subject,
      unit,
      limit: now.limit,
      periodStart: hold.periodStart,
      threshold,
      settled,
    });
}

/** The counter of a hold with the limit in force: Steps that opened under different limits may settle in turn. */
async function counterOf(
  { budgets, clock }: GatewayContext,
  hold: Hold,
): Promise<TrackedCounter | null> {
  const budget = (await budgets.current()).budgets.find(({ id }) => id === hold.budgetId);
  if (!budget?.warnAt.length) return null;
  return { ...hold, limit: limitInForce(budget, clock.now()), warnAt: budget.warnAt };
}

async function settledOn({ store }: GatewayContext, counter: TrackedCounter): Promise<number> {
  const { budgetId, subject, periodStart } = counter;
  const query = { budgetId, subject, periodStart };
  const { data } = await store.budgets.counters(query, { cursor: null, limit: 1 });
  return data[0]?.settled ?? 0;
}
