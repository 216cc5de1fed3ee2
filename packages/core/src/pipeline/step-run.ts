import { knownOutputTokens } from "../attempts/meter-attempt.ts";
import { upstreamFailure } from "../attempts/upstream-failure.ts";
import { ProviderError } from "../contracts/provider.ts";
import type { AttemptSettlement } from "../contracts/step-verbs.ts";
import type { Hold } from "../domain/budget.ts";
import type { CompletionEvent, FinishReason } from "../domain/completion-event.ts";
import { formatModelId } from "../domain/model-id.ts";
import type { AttemptEnd } from "../domain/step.ts";
import { toGatewayError } from "../errors/gateway-error.ts";
import type { Timed } from "../kernel/timers.ts";
import type { Ticket } from "../limits/admission.ts";
import { SlotShare } from "../limits/slots.ts";
import { ClientClosed, inputOf, RunningAttempt, type StepRun, seenOf } from "./attempt.ts";
import type { GatewayContext } from "./context.ts";
import { withDecision } from "./decision-headers.ts";
import type {
  AnswerReader,
  GovernedAnswer,
  PreparedCall,
  PresentedAnswer,
  SettledAnswer,
} from "./governed-call.ts";
import { nextAttempt } from "./next-attempt.ts";
import { meet } from "./obligations.ts";
import type { OpenedStep } from "./open-step.ts";
import type { PlannedAttempt } from "./plan-attempt.ts";
import { endedBy, isAnswerKept, isUnsure, settleCompleted, settleEnded } from "./settle.ts";

/** Starts an opened Step. Its provider is asked once the answer is read. */
export function startStep(
  context: GatewayContext,
  call: PreparedCall,
  opened: OpenedStep,
  ticket: Ticket,
): GovernedAnswer {
  ticket.endTurn();
  const run = new StepExecution(context, call, opened, ticket);
  run.begin();
  return {
    ...opened.answer,
    signal: call.signal,
    read: (reader) => run.read(reader),
    abandon: run.leave,
    systemFingerprint: () => run.attempt.systemFingerprint,
    servedBy: () => run.servedBy(),
    inputSoFar: () => inputOf(run.attempt),
    copyRoom: run.copyRoom,
  };
}

/** The details of an attempt event, without the ids of the attempt. */
type AttemptEvent =
  | { readonly type: "attempt.started" }
  | (Omit<AttemptEnd, "error"> & { readonly type: "attempt.ended" });

/** How a Step ended: its answer, or the error for the client. */
type Ending = { readonly settled: SettledAnswer } | { readonly error: Error };

const never = Number.POSITIVE_INFINITY;

/**
 * Runs a Step from its opening to its end. The methods follow this order: ask, take events, retry or fall back, settle,
 * conclude. The methods after them handle outside events: the client leaves, a deadline passes, the gateway closes.
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
  isUnsure = false;
  /** Room for a copy of the answer for repeats; null if it isn't kept. */
  readonly copyRoom: SlotShare | null;
  readonly ended: AttemptSettlement[] = [];
  retries = 0;
  readonly fallbacks: string[];
  readonly held: Hold[];
  #reader: AnswerReader | null = null;
  #hasAsked = false;
  /** True once the client has left an answer that continues without it. */
  #goesOn = false;
  #ending: Ending | null = null;
  #deadlineAt: number;
  /** When the gateway stops reading an answer whose client left. Monotonic. */
  #drainedAt = never;
  /** The owner of the slot that this Step holds in `drains`; null for none. */
  #drain: string | null = null;
  #slot = 0;
  readonly #ticket: Ticket;
  #endPause: (() => void) | null = null;

  constructor(context: GatewayContext, call: PreparedCall, opened: OpenedStep, ticket: Ticket) {
    const { routed, holds } = opened.planned;
    this.context = context;
    this.call = call;
    this.opened = opened;
    this.#ticket = ticket;
    this.startedAt = context.clock.monotonic();
    const targets = call.selection?.after(routed.route) ?? [];
    this.fallbacks = [...targets, ...meet.fallbacks(routed.decision)];
    this.held = [...holds];
    this.copyRoom = isAnswerKept(context, call, opened)
      ? new SlotShare(context.copies, slotOwner(opened))
      : null;
    this.#deadlineAt = this.startedAt + context.deadlines.total;
    this.attempt = new RunningAttempt(this, opened.planned);
  }

  /** From here on the Step will end even if nobody reads it: the client may leave, and its deadline runs. */
  begin(): void {
    const { context, call, opened } = this;
    if (context.isObserved()) this.#reportAttempt({ type: "attempt.started" });
    this.#slot = context.timers.add(this, this.#deadlineAt);
    opened.open.runs({
      outputTokens: () => knownOutputTokens(this.attempt.planned.attempt, seenOf(this.attempt)),
      stop: () => this.stop(gatewayClosed(this)),
    });
    if (call.signal.aborted) this.leave();
    else call.signal.addEventListener("abort", this.leave, { once: true });
  }

  /** Asks the provider and passes its events and the end to the reader; only the end if the Step has ended. */
  read(reader: AnswerReader): void {
    this.#reader = reader;
    if (this.isAbandoned) reader.left();
    if (this.#ending === null) this.#askOnce();
    else notifyReader(reader, this.#ending);
  }

  #askOnce(): void {
    if (this.#hasAsked) return;
    this.#hasAsked = true;
    this.#ask();
  }

  #ask(): void {
    // If the client left while the Step was opening, no provider is asked and nothing is charged.
    if (this.stopReason !== null) this.attempt.stop(this.stopReason);
    else this.attempt.ask();
  }

  readonly take = (events: readonly CompletionEvent[]): Promise<void> | null =>
    this.isAbandoned || this.#reader === null ? null : this.#reader.take(events);

  failed(thrown: unknown): void {
    void this.#continueAfter(thrown);
  }

  /** Makes another attempt, or ends the Step. */
  async #continueAfter(thrown: unknown): Promise<void> {
    const failure = failureOf(this, thrown);
    const settlement = endedBy(this, failure);
    this.attempt.settlement = settlement;
    this.isUnsure ||= isUnsure(this, failure);
    if (this.context.isObserved()) this.attemptEnded(settlement);
    let planned: PlannedAttempt;
    try {
      planned = await nextAttempt(this.context, this, { failure, settlement });
    } catch (last) {
      return this.#end(last, settlement);
    }
    this.attempt = new RunningAttempt(this, planned);
    if (this.context.isObserved()) this.#reportAttempt({ type: "attempt.started" });
    this.#ask();
  }

  attemptEnded({ error: _, charge: __, number: ___, ...end }: AttemptSettlement): void {
    this.#reportAttempt({ type: "attempt.ended", ...end });
  }

  #reportAttempt(event: AttemptEvent): void {
    const { context, call, opened } = this;
    const { attempt, routed } = this.attempt.planned;
    context.notify({
      ...event,
      at: context.clock.now(),
      requestId: call.requestId,
      organizationId: opened.owner.organizationId,
      keyId: opened.owner.keyId,
      stepId: opened.answer.stepId,
      attempt: attempt.number,
      model: formatModelId(attempt),
      decisionId: routed.decision.id,
    });
  }

  answered(finishReason: FinishReason): void {
    this.context.afterReads(() => {
      if (this.isAbandoned) this.failed(clientClosed());
      else void settleCompleted(this.context, this, finishReason);
    });
  }

  keep(settled: SettledAnswer): PresentedAnswer | null {
    return this.copyRoom === null ? null : (this.#reader?.keep(settled) ?? null);
  }

  completed(settled: SettledAnswer): void {
    this.#conclude({ settled });
  }

  /** A failure before the outcome is fixed counts as a failed attempt. */
  unsettled(thrown: unknown): void {
    if (this.isEnding) this.#conclude({ error: this.#visibleFailure(thrown) });
    else this.failed(thrown);
  }

  /** The Step did not complete. */
  async #end(thrown: unknown, attempt: AttemptSettlement): Promise<void> {
    await settleEnded(this.context, this, { failure: failureOf(this, thrown), attempt });
    this.#conclude({ error: this.#visibleFailure(thrown) });
  }

  /** The error that a caller gets for a failed Step, with the headers of its decision. */
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
    this.copyRoom?.release();
    if (this.#drain !== null) this.context.drains.release(this.#drain);
    if (this.#reader !== null) notifyReader(this.#reader, ending);
    // A reader may have taken the room over.
    this.#ticket.release();
  }

  /**
   * The client left. Ends the provider's call, or reads it to its end if a slot is free and time allows. If the answer is
   * kept for repeats and a slot is free, the Step continues as if the client had stayed.
   */
  readonly leave = (): void => {
    if (this.isAbandoned || this.#goesOn || this.#ending !== null) return;
    this.#goesOn = this.#mayGoOn();
    this.isAbandoned = !this.#goesOn;
    // A stream whose outcome is fixed only lacks its end.
    if (!this.isEnding || !this.call.stream) this.#reader?.left();
    if (this.#goesOn) this.attempt.release();
    else this.#abandon();
  };

  /** Whether the Step continues without its client, for repeats of the request. */
  #mayGoOn(): boolean {
    const isWanted = this.copyRoom !== null && this.context.onDisconnect !== "abort";
    return isWanted && this.#hasAsked && this.#takeDrain();
  }

  /** Takes a slot in `drains` until the Step ends; false if none is free. */
  #takeDrain(): boolean {
    const owner = slotOwner(this.opened);
    if (!this.context.drains.take(owner)) return false;
    this.#drain = owner;
    return true;
  }

  #abandon(): void {
    const { context } = this;
    if (!this.#mayBeReadOn() || !this.#takeDrain()) {
      this.stop(clientClosed());
      return;
    }
    // A plain answer has its own deadline.
    if (this.call.stream) this.#drainedAt = context.clock.monotonic() + context.deadlines.drain;
    context.timers.checkBy(this.#drainedAt);
    this.#readOn();
  }

  /**
   * Whether the answer may be read to its end. By default only if its cost is known there: plain answers arrive whole, and
   * reasoning is never fully visible.
   */
  #mayBeReadOn(): boolean {
    const { attempt, call } = this;
    const { onDisconnect } = this.context;
    if (onDisconnect === "abort" || attempt.host === null || attempt.settlement !== null)
      return false;
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
      this.stop(deadlinePassed(this));
    }
    return Math.min(this.attempt.look(now), this.#deadlineAt, this.#drainedAt);
  }

  /** Stops the run. The first reason counts. */
  stop(reason: ClientClosed | ProviderError): void {
    if (this.stopReason === null && !this.isEnding) {
      this.stopReason = reason;
      this.#endPause?.();
      if (this.#hasAsked) this.attempt.stop(reason);
    }
    this.#readOn();
  }

  pause(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.context.clock.after(milliseconds, resolve);
      this.#endPause = () => {
        cancel();
        resolve();
      };
    });
  }

  /** Continues without the client. Waiting for a client that stopped reading would leave the Step open. */
  #readOn(): void {
    this.attempt.release();
    this.#askOnce();
  }

  /** The canonical id of the model that answers. Once there is output, no other attempt can follow. */
  servedBy(): string | null {
    return this.attempt.firstTokenAt === null && !this.isEnding
      ? null
      : formatModelId(this.attempt.planned.attempt);
  }
}

/** The API key of a Step, as the owner of slots. */
function slotOwner({ owner: { organizationId, keyId } }: OpenedStep): string {
  return JSON.stringify([organizationId, keyId]);
}

function notifyReader(reader: AnswerReader, ending: Ending): void {
  if ("settled" in ending) reader.completed(ending.settled);
  else reader.failed(ending.error);
}

/** Why the attempt ended. A reason to stop the whole Step comes first. */
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

function gatewayClosed(run: StepRun): ProviderError {
  return new ProviderError("The gateway was closed before the answer was complete.", {
    reason: "gateway_closed",
    delivery: deliveryOf(run),
  });
}

function deadlinePassed(run: StepRun): ProviderError {
  return new ProviderError("The provider did not complete its answer in time.", {
    reason: "deadline",
    delivery: deliveryOf(run),
    timedOut: true,
  });
}

/** It is known that no provider runs the call before it is sent, and in a backoff. */
function deliveryOf({ attempt, isUnsure }: StepRun): "unknown" | "not-sent" {
  return isUnsure || (attempt.host !== null && attempt.settlement === null)
    ? "unknown"
    : "not-sent";
}
