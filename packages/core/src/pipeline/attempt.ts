import {
  type AnswerSink,
  type ProviderAnswer,
  type ProviderCall,
  ProviderError,
} from "../contracts/provider.ts";
import type { AttemptSettlement } from "../contracts/step-verbs.ts";
import type { Hold } from "../domain/budget.ts";
import { type CompletionFold, createFold } from "../domain/completion.ts";
import type { CompletionEvent, FinishReason } from "../domain/completion-event.ts";
import { tokensOfBytes } from "../domain/estimate.ts";
import type { Message } from "../domain/message.ts";
import { stateOrigin } from "../domain/provider-state.ts";
import type { ObservedOutput } from "../evidence/meter.ts";
import { yieldToEventLoop } from "../kernel/event-loop.ts";
import { sealFields } from "../sessions/state-seal.ts";
import { type AnswerIntake, createAnswerIntake } from "./answer-intake.ts";
import type { GatewayContext } from "./context.ts";
import type { PreparedCall, SettledAnswer, TakeEvents } from "./governed-call.ts";
import type { OpenedStep } from "./open-step.ts";
import { type PlannedAttempt, sentBefore } from "./plan-attempt.ts";

/** A Step while it runs: its attempts one after the other, until it is stopped or ends. */
export interface StepRun {
  readonly context: GatewayContext;
  readonly call: PreparedCall;
  readonly opened: OpenedStep;
  /** Monotonic. */
  readonly startedAt: number;
  readonly attempt: RunningAttempt;
  /** Why everything must stop: the client left, or the deadline passed. */
  readonly stopReason: ClientClosed | ProviderError | null;
  /** Nobody reads the answer any more. */
  readonly isAbandoned: boolean;
  /** True once its settlement began: from then on its outcome is fixed. */
  isEnding: boolean;
  /** The attempts before the running one, as they ended. */
  readonly ended: AttemptSettlement[];
  /** Retries of the current model so far. */
  retries: number;
  /** Models still to try, in order. */
  readonly fallbacks: string[];
  /** What was held so far: a request counts once per counter, whatever number of attempts it takes. */
  readonly held: Hold[];
  /** Takes what the client is to see. */
  readonly take: TakeEvents;
  /** The running attempt came to its end, and says why the model stopped. */
  answered(finishReason: FinishReason): void;
  failed(thrown: unknown): void;
  /** Its settlement is durable. */
  completed(settled: SettledAnswer): void;
  /** It could not be settled as completed. */
  unsettled(thrown: unknown): void;
}

/** The client left before its answer was complete. */
export class ClientClosed extends Error {
  override readonly name = "ClientClosed";
}

/** After so many events what else waits for the process has its turn: a provider may have them all at hand. */
const maxEventsPerTurn = 256;
const never = Number.POSITIVE_INFINITY;

/** One attempt in flight: its provider tells it what happens, and it keeps what was seen. */
export class RunningAttempt implements AnswerSink {
  readonly planned: PlannedAttempt;
  readonly fold: CompletionFold = createFold();
  /** Monotonic. */
  readonly startedAt: number;
  host: string | null = null;
  bodySha256: string | null = null;
  providerRequestId: string | null = null;
  providerModel: string | null = null;
  systemFingerprint: string | null = null;
  toolCalls = 0;
  /** Whether the client can have seen text, a refusal or a tool call of it. */
  isVisible = false;
  /** Whether reasoning was seen of it, or state that means reasoning. */
  hasReasoned = false;
  /** Whether the model wrote something after its provider last reported usage. */
  hasWrittenOn = false;
  /** True from when it failed: another may follow it. */
  hasFailed = false;
  /** Monotonic; null until the model said something. */
  firstTokenAt: number | null = null;
  readonly #run: StepRun;
  readonly #intake: AnswerIntake;
  /** Nothing more is taken of its provider. */
  #isOver = false;
  #cancel = (): void => {};
  /** Made for providers that ask for their call's signal. */
  #controller: AbortController | null = null;
  #stoppedFor: unknown = null;
  /** The organization's own credential; null on a platform connection. */
  #credential: string | null = null;
  /** When the provider has been silent for too long; never while the client is what is waited for. Monotonic. */
  #silentAt = never;
  #handled = 0;
  #resume = (): void => {};

  constructor(run: StepRun, planned: PlannedAttempt) {
    const { context, call } = run;
    this.#run = run;
    this.planned = planned;
    this.startedAt = context.clock.monotonic();
    this.#intake = createAnswerIntake(
      context.limits,
      !call.stream || call.endpoint === "responses",
    );
  }

  /** Asks the provider, on the platform's account or the organization's own. */
  ask(): void {
    const { context, call } = this.#run;
    const { firstByte, plainAnswer } = context.deadlines;
    // A plain answer comes all at once, and whatever its provider sends before says nothing.
    this.#expectEvent(context.clock.monotonic(), call.stream ? firstByte : plainAnswer);
    if (this.planned.routed.route.connection === "customer") void this.#askWithCredential();
    else this.#begin();
  }

  events(events: readonly CompletionEvent[]): Promise<void> | null {
    if (this.#isOver) return null;
    try {
      return this.#take(events) ?? this.#yieldSometimes(events.length);
    } catch (thrown) {
      this.failed(thrown);
      return null;
    }
  }

  ended(): void {
    if (this.#isOver) return;
    const finishReason = this.fold.finishReason();
    if (finishReason === null) this.failed(cut());
    else {
      this.#end();
      this.#run.answered(finishReason);
    }
  }

  failed(thrown: unknown): void {
    if (this.#isOver) return;
    this.#end();
    this.hasFailed = true;
    if (thrown instanceof ProviderError && this.#credential !== null)
      thrown.redact([this.#credential]);
    this.#run.failed(thrown);
  }

  /** Ends the call, whether its provider notices or not; what waits for its signal hears of it. */
  stop(reason: unknown): void {
    this.#stoppedFor ??= reason;
    this.#controller?.abort(reason);
    this.failed(reason);
  }

  /** The client is waited for no more: it left, or is not to hold the rest up. */
  release(): void {
    this.#resume();
  }

  /** Aborts when the attempt is stopped. */
  get signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController();
      if (this.#stoppedFor !== null) this.#controller.abort(this.#stoppedFor);
    }
    return this.#controller.signal;
  }

  /** Gives a silent provider up; says when to look again. */
  look(now: number): number {
    if (now >= this.#silentAt) this.stop(silent());
    return this.#silentAt;
  }

  /** Each attempt opens the credential for itself; after a failure it may be another one by now. */
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
    try {
      const answer = this.planned.routed.route.provider.complete(
        new CallOfAttempt(this, this.#run, this.#credential),
      );
      this.#cancel = answer.subscribe?.(this) ?? pull(answer, this);
    } catch (thrown) {
      this.failed(thrown);
    }
    // What failed at once had nothing to cancel yet.
    if (this.#isOver) this.#endCall();
  }

  /** Takes events in, and hands on what the client is to see. */
  #take(events: readonly CompletionEvent[]): Promise<void> | null {
    const { context, call, take } = this.#run;
    const now = context.clock.monotonic();
    const visible: CompletionEvent[] = [];
    for (const event of this.#intake.take(events))
      if (this.#note(event, now)) visible.push(this.#sealed(event));
    let room: Promise<void> | null = null;
    if (visible.length > 0) {
      this.#expectEvent(now, call.stream ? context.deadlines.idle : context.deadlines.plainAnswer);
      room = take(visible);
    } else if (call.stream && events.some(({ type }) => type !== "request-sent"))
      this.#expectEvent(now, context.deadlines.idle);
    const excess = this.#intake.failure(this.fold.outputBytes(), this.fold.stateSize());
    if (excess !== null) throw excess;
    return room && this.#untilRoom(room);
  }

  /** While the client is what is waited for, the provider's silence does not count. */
  #untilRoom(room: Promise<void>): Promise<void> {
    const { context, call } = this.#run;
    this.#silentAt = never;
    return new Promise((resolve) => {
      this.#resume = () => {
        if (!this.#isOver && this.#silentAt === never)
          this.#expectEvent(
            context.clock.monotonic(),
            call.stream ? context.deadlines.idle : context.deadlines.plainAnswer,
          );
        resolve();
      };
      room.then(this.#resume, (thrown) => {
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

  #expectEvent(now: number, bound: number): void {
    this.#silentAt = now + bound;
    this.#run.context.timers.checkBy(this.#silentAt);
  }

  #end(): void {
    this.#isOver = true;
    this.#silentAt = never;
    this.#endCall();
  }

  /** Whether a provider can end its call or not, the attempt is over, and the Step goes on. */
  #endCall(): void {
    try {
      this.#cancel();
    } catch {
      // What it failed with is the provider's own.
    }
  }

  /** Notes an event; true when it is for the client to see now. */
  #note(event: CompletionEvent, now: number): boolean {
    switch (event.type) {
      case "request-sent":
        this.host = event.host;
        this.bodySha256 = event.bodySha256;
        return false;
      case "answer-started":
        this.providerRequestId = event.providerRequestId ?? null;
        this.providerModel = event.providerModel ?? null;
        this.systemFingerprint = event.systemFingerprint ?? null;
        return false;
      case "usage":
        this.hasWrittenOn = false;
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

  /** What only the provider can read leaves sealed. */
  #sealed(event: CompletionEvent): CompletionEvent {
    if (event.type !== "state") return event;
    const origin = stateOrigin(this.planned.attempt);
    return { ...event, fields: sealFields(this.#run.call.state.seal, origin, event.fields) };
  }
}

/** The call of an attempt. Few providers ask for its signal: it is made when one does. */
class CallOfAttempt implements ProviderCall {
  /** One getter for all: V8 keeps the getter of each object literal that has one. */
  static readonly #signal: PropertyDescriptor & ThisType<CallOfAttempt> = {
    enumerable: true,
    get() {
      return this.#attempt.signal;
    },
  };
  readonly model: string;
  readonly upstreamName: string;
  readonly request: ProviderCall["request"];
  declare readonly continues?: readonly Message[];
  readonly stream: boolean;
  readonly credential: string | null;
  declare readonly signal: AbortSignal;
  readonly limits: ProviderCall["limits"];
  readonly #attempt: RunningAttempt;

  constructor(attempt: RunningAttempt, { context, call }: StepRun, credential: string | null) {
    const { model, upstreamName } = attempt.planned.routed.route;
    this.model = `${model.vendor}/${model.model}`;
    this.upstreamName = upstreamName;
    this.request = attempt.planned.request;
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
    this.#attempt = attempt;
  }
}

/** What was seen of what the model has written so far. */
export function seenOf(attempt: RunningAttempt): ObservedOutput {
  const { fold, isVisible, hasReasoned, hasWrittenOn } = attempt;
  return {
    tokens: tokensOfBytes(fold.outputBytes()),
    isVisible: isVisible && fold.outputBytes() > 0,
    hasReasoned: hasReasoned || (fold.usage().reasoningTokens ?? 0) > 0,
    isFinished: fold.finishReason() !== null && !hasWrittenOn,
  };
}

/** Tells a sink what an iteration gives. What it returns ends the iteration, which is not waited for: it may hang. */
function pull(answer: ProviderAnswer, sink: AnswerSink): () => void {
  const iterator = answer[Symbol.asyncIterator]();
  let isOver = false;
  const tellAll = async (): Promise<void> => {
    while (!isOver) {
      const { done, value } = await iterator.next();
      if (isOver) return;
      if (done) return sink.ended();
      await sink.events(value);
    }
  };
  tellAll().catch((thrown: unknown) => sink.failed(thrown));
  return () => {
    isOver = true;
    iterator.return?.().catch(() => {});
  };
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
