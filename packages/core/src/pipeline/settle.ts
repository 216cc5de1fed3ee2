import { type Provider, ProviderError } from "../contracts/provider.ts";
import type {
  AttemptSettlement,
  CommittedContent,
  SettleStepResult,
  StepReply,
  StepSettlement,
} from "../contracts/step-verbs.ts";
import { type Completion, replyMessage, textOfKind, withState } from "../domain/completion.ts";
import type { FinishReason } from "../domain/completion-event.ts";
import { stateOrigin } from "../domain/provider-state.ts";
import type { StepOutcome } from "../domain/step.ts";
import { sumsOf } from "../domain/step-sums.ts";
import type { Usage } from "../domain/usage.ts";
import { settledLeaf } from "../evidence/leaves.ts";
import { meterAttempt } from "../evidence/meter.ts";
import { isLarge, otherWork } from "../kernel/other-work.ts";
import { sealBundle, sealCompletion } from "../sessions/provider-state.ts";
import { replyChain } from "../sessions/transcript-chain.ts";
import { type ClientClosed, type Run, seenOf } from "./attempt.ts";
import type { Candidate } from "./candidate.ts";
import { committed } from "./committed.ts";
import { evidenceUnavailable } from "./durable.ts";
import type { SettledAnswer } from "./governed-call.ts";
import type { Line } from "./line.ts";
import { writeAgain } from "./surely.ts";
import { warnOfBudgets } from "./warn-of-budgets.ts";

/**
 * Settles a completed Step; only what the run is then told may be shown as complete. Where that fails, the Step is left to
 * recovery and the observers are told.
 */
export async function settleCompleted(
  line: Line,
  run: Run,
  finishReason: FinishReason,
): Promise<void> {
  let settled: SettledAnswer;
  try {
    const answered = run.attempt.fold.completion();
    const attempt = meterRunning(line, run, { outcome: "completed", reason: null });
    settled = settledAnswer(line, run, { answered, finishReason, usage: attempt.usage });
    fixOutcome(run);
    const isLong = isLarge(run.attempt.fold.outputBytes());
    if (isLong) await otherWork();
    const concluding = run.call.conclude(run.opened.answer, settled, (reply) =>
      keepsContent(run) ? withState(reply, answered, originOf(run)) : reply,
    );
    const { reply, response } = concluding instanceof Promise ? await concluding : concluding;
    const content = Buffer.from(JSON.stringify(reply));
    if (isLarge(content.length)) await otherWork();
    const chain = replyChain(run.opened.chain, reply, run.call.caller.salt);
    if (isLong) await otherWork();
    await settle(line, run, {
      attempt,
      finishReason,
      reply: { ...committed(line, content, keepsContent(run)), chain },
      reasoning: shownReasoning(line, run, answered),
      response,
    });
    if (isLong) await otherWork();
  } catch (thrown) {
    if (run.isEnding) leaveToRecovery(line, run);
    run.unsettled(thrown);
    return;
  }
  run.completed(settled);
}

function settledAnswer(
  line: Line,
  run: Run,
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
    settledAt: line.clock.now(),
  };
}

function originOf({ attempt }: Run): string {
  return stateOrigin(attempt.candidate.attempt);
}

/**
 * Settles a Step that did not complete, or whose client left: then its answer and its usage stay on the Step, and nothing
 * joins the Session. Where that fails, it is left to recovery and the observers are told.
 */
export async function settleEnded(
  line: Line,
  run: Run,
  failure: ClientClosed | ProviderError,
): Promise<void> {
  const ended =
    failure instanceof ProviderError && !run.isAbandoned
      ? { outcome: "failed" as const, reason: failure.reason }
      : { outcome: "cancelled" as const, reason: "client_closed" };
  fixOutcome(run);
  try {
    const said = run.attempt.fold.completion();
    await settle(line, run, {
      attempt: meterRunning(line, run, ended, failure),
      finishReason: run.isAbandoned ? said.finishReason : null,
      reply: partialReply(line, run, said),
      reasoning: shownReasoning(line, run, said),
      response: null,
    });
  } catch {
    leaveToRecovery(line, run);
  }
}

/** Whatever failed, the lease must not name the Step any more, or nobody would recover it. */
function leaveToRecovery(line: Line, run: Run): void {
  run.opened.open.remove();
  line.notify({ type: "gateway.degraded", at: line.clock.now(), what: "settlement" });
}

/** The usage record of the running attempt, as it ends. */
export function meterRunning(
  line: Line,
  run: Run,
  ended: { readonly outcome: StepOutcome; readonly reason: string | null },
  failure: ClientClosed | ProviderError | null = null,
): AttemptSettlement {
  const { attempt } = run;
  const {
    host,
    bodySha256,
    providerRequestId,
    providerModel,
    toolCalls,
    firstTokenAt,
    startedAt,
    fold,
  } = attempt;
  return meterAttempt(attempt.candidate.attempt, ended, {
    host,
    bodySha256,
    providerRequestId,
    providerModel,
    usage: fold.usage(),
    reportedCostFactor: factorOf(attempt.candidate.decided.route.provider),
    output: seenOf(attempt),
    toolCalls,
    durationMs: line.clock.monotonic() - startedAt,
    timeToFirstTokenMs: firstTokenAt === null ? null : firstTokenAt - startedAt,
    nothingUsed:
      host === null ||
      (failure instanceof ProviderError && wasRefused(failure, fold.outputBytes())),
    error: failure instanceof ProviderError ? errorOf(line, run, failure) : null,
  });
}

/** It can quote the prompt, so it is kept as the transcript is. */
function errorOf(line: Line, run: Run, { text }: ProviderError): CommittedContent | null {
  return text === null ? null : committed(line, Buffer.from(text), keepsContent(run));
}

const defaultFactor = 2;

/** By what factor a cost the provider reports may leave the price table; null where it is not trusted. */
function factorOf({ billing }: Provider): number | null {
  return billing?.reportedCost === "trust" ? (billing.reportedCostFactor ?? defaultFactor) : null;
}

/** The provider answered an error status, or was never reached. */
function wasRefused({ delivery, status }: ProviderError, outputBytes: number): boolean {
  return (
    delivery === "not-sent" ||
    (delivery === "answered" && status !== null && status >= 400 && outputBytes === 0)
  );
}

type Ending = Pick<StepSettlement, "attempt" | "finishReason" | "reply" | "reasoning" | "response">;

/** From here on nothing stops the run, however long its records take. */
function fixOutcome(run: Run): void {
  run.isEnding = true;
}

function settle(line: Line, run: Run, ending: Ending): Promise<void> {
  const settlement = settlementOf(line, run, ending);
  const { open } = run.opened;
  const write = () => line.store.settleStep(settlement);
  const written = (result: SettleStepResult, isRepeated: boolean): void => {
    // An earlier try may have settled it; only recovery settles a Step otherwise.
    if (!result.settled && !(isRepeated && result.outcome === settlement.outcome))
      throw evidenceUnavailable(new Error("the Step was settled by recovery"));
    open.remove();
    if (line.isObserved()) tellSettled(line, run, settlement);
  };
  return write().then(
    (result) => written(result, false),
    (failure: unknown) =>
      writeAgain(line.clock, write, failure).then(
        (result) => written(result, true),
        (cause: unknown) => {
          throw evidenceUnavailable(cause);
        },
      ),
  );
}

function tellSettled(line: Line, run: Run, settlement: StepSettlement): void {
  const { at, organizationId, stepId, outcome, reason, attempt } = settlement;
  line.notify({
    type: "step.settled",
    at,
    organizationId,
    stepId,
    outcome,
    reason,
    ...sumsOf([...run.ended, attempt]),
    durationMs: Math.round(line.clock.monotonic() - run.startedAt),
  });
  // Nobody waits for a warning.
  const { holds } = run.attempt.candidate;
  void warnOfBudgets(line, { organizationId, holds, charge: attempt.charge });
}

function settlementOf(
  line: Line,
  { opened }: Run,
  { attempt, finishReason, reply, reasoning, response }: Ending,
): StepSettlement {
  const settlement: Omit<StepSettlement, "leaf"> = {
    organizationId: opened.owner.organizationId,
    stepId: opened.answer.stepId,
    at: line.clock.now(),
    outcome: attempt.outcome,
    reason: attempt.reason,
    attempt,
    finishReason,
    reply,
    reasoning,
    response,
  };
  return { ...settlement, leaf: settledLeaf(line.ids.uuid(), settlement) };
}

/** What was said before a Step failed or was cancelled stays on the Step and never joins the Session. */
function partialReply(line: Line, run: Run, said: Completion): StepReply | null {
  const message = replyMessage(said);
  const isEmpty =
    message.content == null && message.refusal === undefined && message.tool_calls === undefined;
  if (isEmpty) return null;
  const content = Buffer.from(JSON.stringify([message]));
  return { ...committed(line, content, keepsContent(run)), chain: new Uint8Array() };
}

function shownReasoning(line: Line, run: Run, said: Completion): CommittedContent | null {
  const text = textOfKind(said, "reasoning");
  return text === null || text === ""
    ? null
    : committed(line, Buffer.from(text), keepsContent(run));
}

/** What a fallback answers is kept only as its own decision and the request's first one both allow. */
function keepsContent({ opened, attempt }: Run): boolean {
  return keeps(opened.candidate) && keeps(attempt.candidate);
}

function keeps({ decided }: Candidate): boolean {
  return decided.decision.obligations?.transcript !== "digest";
}
