import { type CallDeclined, isProviderFault } from "../attempts/circuit-breaker.ts";
import { inputSoFar, type ObservedOutput } from "../attempts/meter-attempt.ts";
import { mayFallBack } from "../attempts/retry.ts";
import { isTraceParent } from "../contracts/observer.ts";
import {
  type AnswerSink,
  type ProviderAnswer,
  type ProviderCall,
  ProviderError,
} from "../contracts/provider.ts";
import type { AttemptSettlement } from "../contracts/step-verbs.ts";
import type { Hold } from "../domain/budget.ts";
import { CompletionFold } from "../domain/completion.ts";
import type { CompletionEvent, FinishReason } from "../domain/completion-event.ts";
import { tokensOfBytes } from "../domain/estimate.ts";
import type { Message } from "../domain/message.ts";
import { stateOrigin } from "../domain/provider-state.ts";
import type { Usage } from "../domain/usage.ts";
import { yieldToEventLoop } from "../kernel/event-loop.ts";
import { synchronous } from "../kernel/synchronous.ts";
import { sealFields } from "../sessions/state-seal.ts";
import { AnswerIntake } from "./answer-intake.ts";
import type { Latencies } from "./choose-target.ts";
import type { GatewayContext } from "./context.ts";
import { askForEmbeddings, hasAllVectors, missingVectors } from "./embedding.ts";
import type { PreparedCall, PresentedAnswer, SettledAnswer, TakeEvents } from "./governed-call.ts";
import type { OpenedStep } from "./open-step.ts";
import { type PlannedAttempt, sentBefore } from "./plan-attempt.ts";
import { accountOf, type ModelAccount, noPlace, Turn } from "./upstreams.ts";

/** A running Step: its attempts one after the other, until it ends. */
export interface StepRun {
  readonly context: GatewayContext;
  readonly call: PreparedCall;
  readonly opened: OpenedStep;
  /** Monotonic. */
  readonly startedAt: number;
  readonly attempt: RunningAttempt;
  /** Why the whole Step must stop: the client left, the deadline passed or the gateway closed. */
  readonly stopReason: ClientClosed | ProviderError | null;
  /** True once the client has left. */
  readonly isAbandoned: boolean;
  /** True once settlement has begun. From then on the outcome is fixed. */
  isEnding: boolean;
  /** The earlier attempts, as they ended. */
  readonly ended: AttemptSettlement[];
  /** Whether an attempt that failed may have run at its provider. */
  readonly isUnsure: boolean;
  /** Retries of the current model so far. */
  retries: number;
  /** Models still to try, in order. */
  readonly fallbacks: string[];
  /** All holds so far. A request counts once per counter, however many attempts it takes. */
  readonly held: Hold[];
  /** Waits for so long, or until the whole Step must stop. */
  pause(milliseconds: number): Promise<void>;
  /** Passes on the events that the client may see. */
  readonly take: TakeEvents;
  /** Reports the running attempt's end to observers. */
  attemptEnded(end: AttemptSettlement): void;
  /** The running attempt is complete. */
  answered(finishReason: FinishReason): void;
  failed(thrown: unknown): void;
  /** The whole answer, if it is kept for repeats. */
  keep(settled: SettledAnswer): PresentedAnswer | null;
  /** The settlement is durable. */
  completed(settled: SettledAnswer): void;
  /** The Step could not be settled as completed. */
  unsettled(thrown: unknown): void;
}

/** The client left before its answer was complete. */
export class ClientClosed extends Error {
  override readonly name = "ClientClosed";
}

/** After this many events, other requests get a turn: a provider may have all its events in memory. */
const maxEventsPerTurn = 256;
const never = Number.POSITIVE_INFINITY;

/** One attempt in flight. It receives its provider's events and keeps what the Step's records need. */
export class RunningAttempt implements AnswerSink {
  readonly planned: PlannedAttempt;
  readonly fold: CompletionFold;
  /** Monotonic. */
  readonly startedAt: number;
  /** Monotonic; null while it runs. */
  endedAt: number | null = null;
  host: string | null = null;
  bodySha256: string | null = null;
  providerRequestId: string | null = null;
  providerModel: string | null = null;
  systemFingerprint = "";
  toolCalls = 0;
  /** Whether the client may have seen text, a refusal or a tool call. */
  isVisible = false;
  /** Whether the provider sent reasoning, or state that implies it. */
  hasReasoned = false;
  /** Whether the model wrote more after the provider last reported its output tokens. */
  hasWrittenOn = false;
  /** Its record once it failed. Its Step may end later, for another reason. */
  settlement: AttemptSettlement | null = null;
  /** Monotonic; null before the first output. */
  firstTokenAt: number | null = null;
  readonly #run: StepRun;
  readonly #intake: AnswerIntake;
  /** The attempt is over: further events are ignored. */
  #isOver = false;
  #cancel: (() => void) | null = null;
  /** Created when the provider asks for the signal. */
  #controller: AbortController | null = null;
  #stoppedFor: unknown = null;
  /** The organization's own Gateway API key; null on a platform connection. */
  #credential: string | null = null;
  /** Its turn at an upstream with limits or a breaker; null without them. */
  #turn: Turn | null = null;
  /** When the provider was asked; null before, and if nothing needs it. Monotonic. */
  #askedAt: number | null = null;
  /** Whether it finds out the latency of a model that had none. */
  #findsLatency = false;
  /**
   * When the wait for a place or for the provider ends; `never` while the gateway waits for the client. Monotonic.
   */
  #silentAt = never;
  #handled = 0;
  /** Stops waiting for a slow client; null while nothing waits. */
  #resume: (() => void) | null = null;

  constructor(run: StepRun, planned: PlannedAttempt) {
    const { context, call } = run;
    this.#run = run;
    this.planned = planned;
    this.startedAt = context.clock.monotonic();
    this.fold = new CompletionFold({ keepsLogprobs: call.repeatsAnswer });
    this.#intake = new AnswerIntake(context.limits, call.repeatsAnswer);
  }

  /** Asks the provider as soon as its upstream has a place. */
  ask(): void {
    const { model } = this.planned.routed.route;
    const { clock, upstreams } = this.#run.context;
    const { keyId } = this.#run.call.caller;
    const upstream = upstreams?.get(model.gateway);
    if (upstream === undefined) {
      this.admitted();
      return;
    }
    this.#turn = new Turn(upstream, { account: this.#account(), keyId }, this);
    this.#turn.start();
    if (this.#turn.isWaiting) this.#expectEvent(clock.monotonic(), upstream.rules.queueWait);
  }

  declined(reason: CallDeclined): void {
    this.failed(reason);
  }

  /** Asks the provider, with the platform's credential or the organization's own. */
  admitted(): void {
    const { clock, deadlines } = this.#run.context;
    this.#expectEvent(clock.monotonic(), deadlines.connect);
    if (this.planned.routed.route.connection === "customer") void this.#askWithCredential();
    else this.#begin();
  }

  events(events: readonly CompletionEvent[]): Promise<void> | null {
    if (this.#isOver) return null;
    try {
      const yielding = this.#yieldSometimes(events.length);
      const taking = this.#take(events);
      return taking && yielding ? taking.then(() => yielding) : (taking ?? yielding);
    } catch (thrown) {
      this.failed(thrown);
      return null;
    }
  }

  ended(): void {
    if (this.#isOver) return;
    const finishReason = this.fold.finishReason();
    const { embedding } = this.#run.call;
    if (finishReason === null) this.failed(cut());
    else if (embedding !== undefined && !hasAllVectors(this.fold, embedding))
      this.failed(missingVectors());
    else {
      this.#end();
      // An answer without output counts too, or its target would stay unknown, and be tried first forever.
      if (this.firstTokenAt === null) this.#noteAnswered(this.#run.context.clock.monotonic());
      this.#turn?.end("answered");
      this.#run.answered(finishReason);
    }
  }

  failed(thrown: unknown): void {
    if (this.#isOver) return;
    this.#end();
    if (this.#askedAt !== null) this.#noteFailure(thrown);
    else this.#turn?.end("stopped");
    if (thrown instanceof ProviderError && this.#credential !== null)
      thrown.redact([this.#credential]);
    this.#run.failed(thrown);
  }

  /** Ends the attempt, whether or not its provider reacts to the abort. Everything already read counts. */
  stop(reason: unknown): void {
    this.#stoppedFor ??= reason;
    this.#controller?.abort(reason);
    this.#endCall();
    this.failed(reason);
  }

  /** Stops waiting for a slow client. */
  release(): void {
    this.#resume?.();
  }

  /** Aborts when the attempt stops. */
  get signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController();
      if (this.#stoppedFor !== null) this.#controller.abort(this.#stoppedFor);
    }
    return this.#controller.signal;
  }

  /** Stops the attempt if it waits too long for a place or for its provider. Returns when to check again. */
  look(now: number): number {
    if (now >= this.#silentAt) {
      if (this.#turn?.isWaiting) this.failed(noPlace("queue_timeout"));
      else this.stop(this.host === null ? neverSent() : silent());
    }
    return this.#silentAt;
  }

  /** Every attempt reads the credential itself: it may have been replaced since the last one. */
  async #askWithCredential(): Promise<void> {
    const { context, call } = this.#run;
    const { organizationId } = call.caller;
    const owner = { organizationId, gateway: this.planned.routed.route.model.gateway };
    const fresh = this.planned.attempt.number > 1;
    try {
      this.#credential = await context.credentials.open(owner, { fresh });
    } catch (thrown) {
      return this.failed(thrown);
    }
    if (!this.#isOver) this.#begin();
  }

  #begin(): void {
    const { clock, latencies } = this.#run.context;
    if (this.#turn !== null || latencies !== null) this.#noteAsked(clock.monotonic());
    try {
      const { provider } = this.planned.routed.route;
      const { embedding } = this.#run.call;
      const call = new CallOfAttempt(this, this.#run, this.#credential);
      const answer =
        embedding === undefined
          ? provider.complete(call)
          : askForEmbeddings(provider, embedding, call);
      this.#cancel = answer.subscribe?.(this) ?? pull(answer, this);
    } catch (thrown) {
      this.failed(thrown);
    }
    // A call that failed at once ended the attempt before its cancel function was known.
    if (this.#isOver) this.#endCall();
  }

  #noteAsked(now: number): void {
    const { context, call } = this.#run;
    this.#askedAt = now;
    this.#findsLatency = context.latencies?.asked(this.#account(), call.stream, now) ?? false;
  }

  /** Records events and passes on those that the client may see. */
  #take(events: readonly CompletionEvent[]): Promise<void> | null {
    const { context, call, take } = this.#run;
    const now = context.clock.monotonic();
    const visible: CompletionEvent[] = [];
    const isFirst = this.firstTokenAt === null;
    for (const event of this.#intake.take(events))
      if (this.#record(event, now)) visible.push(this.#sealed(event));
    let room: Promise<void> | null = null;
    if (visible.length > 0) {
      this.#turn?.heard();
      if (isFirst) this.#noteAnswered(now);
      this.#expectEvent(now, call.stream ? context.deadlines.idle : context.deadlines.plainAnswer);
      room = take(visible);
    } else if (events[0]?.type === "request-sent") this.#expectAnswer(now);
    else if (call.stream && events.length > 0) this.#expectEvent(now, context.deadlines.idle);
    const excess = this.#intake.failure(this.fold.outputBytes(), this.fold.stateSize());
    if (excess !== null) throw excess;
    return room && this.#untilRoom(room);
  }

  /** Waits for a slow client. Until it reads, the provider doesn't count as silent. */
  #untilRoom(room: Promise<void>): Promise<void> {
    const { context, call } = this.#run;
    this.#silentAt = never;
    return new Promise((resolve) => {
      const resume = (): void => {
        if (this.#resume === resume) this.#resume = null;
        if (!this.#isOver && this.#silentAt === never)
          this.#expectEvent(
            context.clock.monotonic(),
            call.stream ? context.deadlines.idle : context.deadlines.plainAnswer,
          );
        resolve();
      };
      this.#resume = resume;
      room.then(resume, (thrown) => {
        this.failed(thrown);
        resolve();
      });
    });
  }

  #yieldSometimes(events: number): Promise<void> | null {
    this.#handled += events;
    if (this.#handled <= maxEventsPerTurn) return null;
    this.#handled = 0;
    return yieldToEventLoop();
  }

  /** The request is on its way. A plain answer arrives in one piece, so the provider may be silent until its end. */
  #expectAnswer(now: number): void {
    const { context, call } = this.#run;
    const { firstByte, plainAnswer } = context.deadlines;
    this.#expectEvent(now, call.stream ? firstByte : plainAnswer);
  }

  #expectEvent(now: number, bound: number): void {
    this.#silentAt = now + bound;
    this.#run.context.timers.checkBy(this.#silentAt);
  }

  #end(): void {
    this.#isOver = true;
    this.endedAt = this.#run.context.clock.monotonic();
    this.#silentAt = never;
    if (this.#findsLatency)
      this.#run.context.latencies?.ended(this.#account(), this.#run.call.stream);
    this.#endCall();
  }

  #noteFailure(thrown: unknown): void {
    const outcome = this.#outcomeOf(thrown);
    const { latencies, clock, retry } = this.#run.context;
    // Otherwise a target that rejects every call would stay unknown, and be tried first forever.
    const isTargets = thrown instanceof ProviderError && mayFallBack(thrown, retry);
    if (latencies !== null && this.firstTokenAt === null && (outcome === "fault" || isTargets))
      latencies.failed(...this.#latency(clock.monotonic()));
    this.#turn?.end(outcome);
  }

  #noteAnswered(now: number): void {
    const { latencies } = this.#run.context;
    if (latencies !== null) latencies.answered(...this.#latency(now));
  }

  #latency(now: number): Parameters<Latencies["answered"]> {
    return [this.#account(), this.#run.call.stream, { asked: this.#askedAt ?? now, now }];
  }

  #account(): ModelAccount {
    return accountOf(this.planned.routed.route, this.#run.call.caller.organizationId);
  }

  /** Whether its end counts against the provider. Only silence does if the whole Step was stopped. */
  #outcomeOf(thrown: unknown): "answered" | "fault" | "stopped" {
    const { context, stopReason } = this.#run;
    if (!(thrown instanceof ProviderError) || this.#askedAt === null) return "stopped";
    if (stopReason === null) return isProviderFault(thrown) ? "fault" : "answered";
    const waited = context.clock.monotonic() - this.#askedAt;
    const wasSilent = this.firstTokenAt === null && waited >= context.deadlines.total / 2;
    return thrown.timedOut && wasSilent ? "fault" : "stopped";
  }

  /** The attempt is over even if the provider fails to end its call. */
  #endCall(): void {
    const cancel = this.#cancel;
    this.#cancel = null;
    try {
      cancel?.();
    } catch {
      // A failure to cancel changes nothing.
    }
  }

  /** Records an event. Returns whether the client may see it. */
  #record(event: CompletionEvent, now: number): boolean {
    switch (event.type) {
      case "request-sent":
        this.host = event.host;
        this.bodySha256 = event.bodySha256;
        return false;
      case "answer-started":
        this.providerRequestId = event.providerRequestId ?? null;
        this.providerModel = event.providerModel ?? null;
        this.systemFingerprint = event.systemFingerprint ?? "";
        return false;
      case "usage":
        // Usage without a valid count of the output leaves an earlier count, which may be incomplete.
        if (event.usage.completionTokens !== undefined) this.hasWrittenOn = false;
        this.fold.add(event);
        return false;
      case "finish":
        this.fold.add(event);
        return false;
      case "tool-call-started":
        this.toolCalls++;
    }
    if (event.type === "reasoning-delta" || event.type === "state") this.hasReasoned = true;
    else if (event.type !== "logprobs") this.isVisible = true;
    if (event.type !== "state" && event.type !== "logprobs") this.hasWrittenOn = true;
    this.fold.add(event);
    this.firstTokenAt ??= now;
    return true;
  }

  /** Seals state that only the provider can read. */
  #sealed(event: CompletionEvent): CompletionEvent {
    if (event.type !== "state") return event;
    const origin = stateOrigin(this.planned.attempt);
    return { ...event, fields: sealFields(this.#run.call.state.seal, origin, event.fields) };
  }
}

/** An attempt as its provider sees it. Few providers read the signal, so it is created on demand. */
class CallOfAttempt implements ProviderCall {
  /** All calls share one getter. In an object literal, V8 would create a new one for each call. */
  static readonly #signal: PropertyDescriptor & ThisType<CallOfAttempt> = {
    enumerable: true,
    get() {
      return this.#attempt.signal;
    },
  };
  readonly model: string;
  readonly upstreamName: string;
  readonly request: ProviderCall["request"];
  readonly outputCap: number;
  declare readonly continues?: readonly Message[];
  readonly stream: boolean;
  readonly credential: string | null;
  declare readonly signal: AbortSignal;
  readonly limits: ProviderCall["limits"];
  readonly traceparent: string | null;
  readonly connectWithin: number;
  readonly #attempt: RunningAttempt;

  constructor(attempt: RunningAttempt, run: StepRun, credential: string | null) {
    const { context, call } = run;
    const { model, upstreamName } = attempt.planned.routed.route;
    this.model = `${model.vendor}/${model.model}`;
    this.upstreamName = upstreamName;
    this.request = attempt.planned.request;
    this.outputCap = attempt.planned.attempt.estimatedOutputTokens;
    const before = sentBefore(call, this.request);
    if (before) this.continues = before.messages;
    this.stream = call.stream;
    this.credential = credential;
    Object.defineProperty(this, "signal", CallOfAttempt.#signal);
    this.limits = {
      eventBytes: context.limits.upstreamEventBytes,
      totalBytes: context.limits.upstreamBytes,
      bodyBytes: 2 * context.limits.answerBytes,
    };
    this.traceparent = context.traceparent === null ? null : traceParentOf(attempt, run);
    this.connectWithin = context.deadlines.connect;
    this.#attempt = attempt;
  }
}

/** Asks the host for the trace context of an attempt. An invalid one is dropped: it would be a header of the call. */
function traceParentOf(
  { planned }: RunningAttempt,
  { context, call, opened }: StepRun,
): string | null {
  const attempt = planned.attempt.number;
  try {
    const { requestId } = call;
    const { stepId } = opened.answer;
    const given: unknown = synchronous(context.traceparent?.({ requestId, stepId, attempt }));
    return isTraceParent(given) ? given : null;
  } catch {
    return null;
  }
}

/** The output so far, as metering needs it. */
export function seenOf(attempt: RunningAttempt): ObservedOutput {
  const { fold, isVisible, hasReasoned, hasWrittenOn } = attempt;
  return {
    tokens: tokensOfBytes(fold.outputBytes()),
    isVisible: isVisible && fold.outputBytes() > 0,
    hasReasoned: hasReasoned || (fold.usage().reasoningTokens ?? 0) > 0,
    isFinished: fold.finishReason() !== null && !hasWrittenOn,
  };
}

/** Whether the model wrote or reasoned, as far as the provider showed or reported it. */
export function hasWorked(attempt: RunningAttempt): boolean {
  const { fold } = attempt;
  const { completionTokens = 0 } = fold.usage();
  return fold.outputBytes() > 0 || completionTokens > 0 || seenOf(attempt).hasReasoned;
}

/** The input of an attempt, as far as it is known while it runs. */
export function inputOf(attempt: RunningAttempt): Usage {
  const observed = { usage: attempt.fold.usage(), output: seenOf(attempt) };
  return inputSoFar(attempt.planned.attempt, observed);
}

/**
 * Feeds an async iterable to a sink. Returns a function that ends the iteration without waiting for it, because it may
 * hang.
 */
function pull(answer: ProviderAnswer, sink: AnswerSink): () => void {
  const iterator = answer[Symbol.asyncIterator]();
  let isOver = false;
  const pushAll = async (): Promise<void> => {
    while (!isOver) {
      const { done, value } = await iterator.next();
      if (isOver) return;
      if (done) return sink.ended();
      await sink.events(value);
    }
  };
  pushAll().catch((thrown: unknown) => sink.failed(thrown));
  return () => {
    isOver = true;
    iterator.return?.().catch(() => {});
  };
}

function neverSent(): ProviderError {
  return new ProviderError("The request could not be sent to the provider in time.", {
    reason: "connect_timeout",
    delivery: "not-sent",
    timedOut: true,
  });
}

function silent(): ProviderError {
  return new ProviderError("The provider stopped answering.", {
    reason: "silent",
    delivery: "unknown",
    timedOut: true,
  });
}

function cut(): ProviderError {
  return new ProviderError("The provider's answer ended before it was complete.", {
    reason: "cut",
    delivery: "unknown",
  });
}
