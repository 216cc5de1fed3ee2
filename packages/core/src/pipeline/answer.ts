import { upstreamFailure } from "../attempts/upstream-failure.ts";
import { ProviderError } from "../contracts/provider.ts";
import type { AttemptSettlement } from "../contracts/step-verbs.ts";
import type { Hold } from "../domain/budget.ts";
import type { CompletionEvent, FinishReason } from "../domain/completion-event.ts";
import { formatModelId } from "../domain/model-id.ts";
import { toGatewayError } from "../errors/gateway-error.ts";
import { knownOutputTokens } from "../evidence/meter.ts";
import type { Timed } from "../kernel/timers.ts";
import { ClientClosed, RunningAttempt, type StepRun, seenOf } from "./attempt.ts";
import type { GatewayContext } from "./context.ts";
import type { AnswerReader, GovernedAnswer, PreparedCall, SettledAnswer } from "./governed-call.ts";
import { nextAttempt } from "./next-attempt.ts";
import type { OpenedStep } from "./open-step.ts";
import type { PlannedAttempt } from "./plan-attempt.ts";
import { settleCompleted, settleEnded } from "./settle.ts";
import { withDecision } from "./with-decision.ts";

/** The answer of an opened Step: nothing is asked of the provider until it is read. */
export function startStep(
  context: GatewayContext,
  call: PreparedCall,
  opened: OpenedStep,
): GovernedAnswer {
  const run = new StepExecution(context, call, opened);
  run.begin();
  return {
    ...opened.answer,
    signal: call.signal,
    read: (reader) => run.read(reader),
    abandon: run.leave,
    systemFingerprint: () => run.attempt.systemFingerprint,
    servedBy: () => run.servedBy(),
  };
}

/** How a run ended: its answer, or what the client is told instead. */
type Ending = { readonly settled: SettledAnswer } | { readonly error: Error };

const never = Number.POSITIVE_INFINITY;

/**
 * A Step from its opening to its end, in this order: ask, take what comes, retry or fall back, settle, tell the reader.
 * Whatever happens outside (the client leaves, a moment passes, the gateway closes) comes in by the methods after them.
 */
class StepExecution implements StepRun, Timed {
  readonly context: GatewayContext;
  readonly call: PreparedCall;
  readonly opened: OpenedStep;
  readonly startedAt: number;
  attempt: RunningAttempt;
  stopReason: ClientClosed | ProviderError | null = null;
  isAbandoned = false;
  isEnding = false;
  readonly ended: AttemptSettlement[] = [];
  retries = 0;
  readonly fallbacks: string[];
  readonly held: Hold[];
  #reader: AnswerReader | null = null;
  #hasAsked = false;
  #ending: Ending | null = null;
  #deadlineAt: number;
  /** When an answer that nobody reads has been read on for long enough. */
  #drainedAt = never;
  /** Under what name it holds one of the places for answers that are read on; null for none. */
  #drain: string | null = null;
  #slot = 0;

  constructor(context: GatewayContext, call: PreparedCall, opened: OpenedStep) {
    const { routed, holds } = opened.planned;
    this.context = context;
    this.call = call;
    this.opened = opened;
    this.startedAt = context.clock.monotonic();
    this.fallbacks = [...(routed.decision.obligations?.fallbacks ?? [])];
    this.held = [...holds];
    this.#deadlineAt = this.startedAt + context.deadlines.total;
    this.attempt = new RunningAttempt(this, opened.planned);
  }

  /** From here on it ends, read or not: the client may leave, and its time runs. */
  begin(): void {
    const { context, call, opened } = this;
    this.#slot = context.timers.add(this, this.#deadlineAt);
    opened.open.runs({
      outputTokens: () => knownOutputTokens(this.attempt.planned.attempt, seenOf(this.attempt)),
      stop: () => this.stop(gatewayClosed()),
    });
    if (call.signal.aborted) this.leave();
    else call.signal.addEventListener("abort", this.leave, { once: true });
  }

  /** Asks the provider and tells the reader what comes; how it ended, where it has. */
  read(reader: AnswerReader): void {
    this.#reader = reader;
    if (this.isAbandoned) reader.left();
    if (this.#ending === null) this.#askOnce();
    else tell(reader, this.#ending);
  }

  #askOnce(): void {
    if (this.#hasAsked) return;
    this.#hasAsked = true;
    this.#ask();
  }

  #ask(): void {
    // Who left while the Step was being opened has asked nothing of the provider, and is charged nothing.
    if (this.stopReason !== null) this.attempt.stop(this.stopReason);
    else this.attempt.ask();
  }

  readonly take = (events: readonly CompletionEvent[]): Promise<void> | null =>
    this.isAbandoned || this.#reader === null ? null : this.#reader.take(events);

  failed(thrown: unknown): void {
    void this.#goOn(thrown);
  }

  /** Makes another attempt, or ends the Step. */
  async #goOn(thrown: unknown): Promise<void> {
    const failure = failureOf(this, thrown);
    this.#tellFailedAttempt(failure);
    let planned: PlannedAttempt;
    try {
      planned = await nextAttempt(this.context, this, failure);
    } catch (last) {
      return this.#end(last);
    }
    this.attempt = new RunningAttempt(this, planned);
    this.#ask();
  }

  /** Whether another attempt follows or not, and however much of this one the client has seen. */
  #tellFailedAttempt(failure: ClientClosed | ProviderError): void {
    if (!(failure instanceof ProviderError)) return;
    this.context.notify({
      type: "attempt.failed",
      at: this.context.clock.now(),
      organizationId: this.opened.owner.organizationId,
      stepId: this.opened.answer.stepId,
      attempt: this.attempt.planned.attempt.number,
      reason: failure.reason,
    });
  }

  answered(finishReason: FinishReason): void {
    if (this.isAbandoned) this.failed(clientClosed());
    else void settleCompleted(this.context, this, finishReason);
  }

  completed(settled: SettledAnswer): void {
    this.#conclude({ settled });
  }

  /** What fails before its outcome is fixed fails the attempt. */
  unsettled(thrown: unknown): void {
    if (this.isEnding) void this.#end(thrown);
    else {
      this.attempt.hasFailed = true;
      this.failed(thrown);
    }
  }

  /** The Step did not complete, or its record could not be written. */
  async #end(thrown: unknown): Promise<void> {
    if (!this.isEnding) await settleEnded(this.context, this, failureOf(this, thrown));
    this.#conclude({ error: this.#visibleFailure(thrown) });
  }

  /** What a caller is told of a Step that failed, with the headers of its decision. */
  #visibleFailure(thrown: unknown): Error {
    const failure = failureOf(this, thrown);
    const isProviders =
      this.stopReason !== null || thrown instanceof ProviderError || thrown instanceof ClientClosed;
    const error =
      failure instanceof ProviderError && isProviders
        ? upstreamFailure(failure)
        : toGatewayError(thrown);
    return withDecision(error, this.context.headerNames, this.opened.answer);
  }

  #conclude(ending: Ending): void {
    this.#ending = ending;
    this.context.timers.remove(this.#slot);
    this.call.signal.removeEventListener("abort", this.leave);
    if (this.#drain !== null) this.context.drains.release(this.#drain);
    if (this.#reader !== null) tell(this.#reader, ending);
  }

  /** The client left: the provider's call ends, or is read on to its end within bounds of time and of number. */
  readonly leave = (): void => {
    if (this.isAbandoned || this.#ending !== null) return;
    this.isAbandoned = true;
    this.#reader?.left();
    const { context, opened } = this;
    const key = JSON.stringify([opened.owner.organizationId, opened.owner.keyId]);
    if (!this.#mayBeReadOn() || !context.drains.take(key)) {
      this.stop(clientClosed());
      return;
    }
    this.#drain = key;
    // A plain answer has its own deadline.
    if (this.call.stream) this.#drainedAt = context.clock.monotonic() + context.deadlines.drain;
    context.timers.checkBy(this.#drainedAt);
    this.#readOn();
  };

  /** Only its end says what such an answer costs: a plain one shows nothing before, and reasoning is never all shown. */
  #mayBeReadOn(): boolean {
    const { attempt, call } = this;
    const { onDisconnect } = this.context;
    if (onDisconnect === "abort" || attempt.host === null || attempt.hasFailed) return false;
    return (
      onDisconnect === "drain" ||
      !call.stream ||
      attempt.planned.attempt.reasons ||
      seenOf(attempt).hasReasoned
    );
  }

  check(now: number): number {
    if (now >= this.#drainedAt) {
      this.#drainedAt = never;
      this.stop(clientClosed());
    }
    if (now >= this.#deadlineAt) {
      this.#deadlineAt = never;
      this.stop(deadlinePassed());
    }
    return Math.min(this.attempt.look(now), this.#deadlineAt, this.#drainedAt);
  }

  /** Stops the run; the first reason counts. */
  stop(reason: ClientClosed | ProviderError): void {
    if (this.stopReason === null && !this.isEnding) {
      this.stopReason = reason;
      if (this.#hasAsked) this.attempt.stop(reason);
    }
    this.#readOn();
  }

  /** Goes on without the client: one that reads no further, or nobody at all, would leave the Step open. */
  #readOn(): void {
    this.attempt.release();
    this.#askOnce();
  }

  /** The canonical id of the model that answers. Another attempt can only follow one of which nothing was seen. */
  servedBy(): string | null {
    return this.attempt.firstTokenAt === null && !this.isEnding
      ? null
      : formatModelId(this.attempt.planned.attempt);
  }
}

function tell(reader: AnswerReader, ending: Ending): void {
  if ("settled" in ending) reader.completed(ending.settled);
  else reader.failed(ending.error);
}

/** Whatever ended an attempt, as the reason it counts for. */
function failureOf(run: StepRun, thrown: unknown): ClientClosed | ProviderError {
  if (run.stopReason !== null) return run.stopReason;
  if (thrown instanceof ProviderError || thrown instanceof ClientClosed) return thrown;
  return new ProviderError("The provider failed.", {
    reason: "provider_fault",
    delivery: run.attempt.host === null ? "not-sent" : "unknown",
    cause: thrown,
  });
}

function clientClosed(): ClientClosed {
  return new ClientClosed("the client left before its answer was complete");
}

function gatewayClosed(): ProviderError {
  return new ProviderError("The gateway was closed before the answer was complete.", {
    reason: "gateway_closed",
    delivery: "unknown",
    status: 503,
  });
}

function deadlinePassed(): ProviderError {
  return new ProviderError("The provider did not complete its answer in time.", {
    reason: "deadline",
    delivery: "unknown",
    timedOut: true,
  });
}
