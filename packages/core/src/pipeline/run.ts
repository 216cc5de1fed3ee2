import { ProviderError } from "../contracts/provider.ts";
import type { AttemptSettlement } from "../contracts/step-verbs.ts";
import type { Hold } from "../domain/budget.ts";
import { type CompletionFold, createFold } from "../domain/completion.ts";
import type { CompletionEvent } from "../domain/completion-event.ts";
import { tokensOfBytes } from "../domain/estimate.ts";
import type { SeenOutput } from "../evidence/meter.ts";
import type { Candidate } from "./candidate.ts";
import type { PreparedCall } from "./governed-call.ts";
import type { OpenedStep } from "./open-step.ts";

/** One attempt in flight, and what was seen of it. */
export interface RunningAttempt {
  readonly candidate: Candidate;
  readonly fold: CompletionFold;
  readonly controller: AbortController;
  readonly startedAt: number;
  host: string | null;
  bodySha256: string | null;
  providerRequestId: string | null;
  providerModel: string | null;
  systemFingerprint: string | null;
  toolCalls: number;
  /** Whether the client can have seen text, a refusal or a tool call of it. */
  isVisible: boolean;
  /** Whether reasoning was seen of it, or state that means reasoning. */
  hasReasoned: boolean;
  /** Whether the model wrote something after its provider last reported usage. */
  hasWrittenOn: boolean;
  /** True from when it failed: another may follow it. */
  hasEnded: boolean;
  /** Monotonic; null until the model said something. */
  firstTokenAt: number | null;
}

/** A Step while it runs: its attempts one after the other, until it is stopped or ends. */
export interface Run {
  readonly call: PreparedCall;
  readonly opened: OpenedStep;
  readonly startedAt: number;
  attempt: RunningAttempt;
  /** Why everything must stop: the client left, or the deadline passed. */
  stopReason: ClientClosed | ProviderError | null;
  /** Nobody reads the answer any more. */
  isAbandoned: boolean;
  /** The attempts before the running one, as they ended. */
  readonly ended: AttemptSettlement[];
  /** Retries of the current model so far. */
  retries: number;
  /** Models still to try, in order. */
  readonly fallbacks: string[];
  /** Counters on which this request has counted already. */
  readonly countedRequests: Set<string>;
  /** True once its settlement began: from then on its outcome is fixed. */
  isEnding: boolean;
}

/** The client left before its answer was complete. */
export class ClientClosed extends Error {
  override readonly name = "ClientClosed";
}

export function createRun(call: PreparedCall, opened: OpenedStep, startedAt: number): Run {
  const attempt = startAttempt(opened.candidate, startedAt);
  const { decided, holds } = opened.candidate;
  return {
    call,
    opened,
    startedAt,
    attempt,
    stopReason: null,
    isAbandoned: false,
    ended: [],
    retries: 0,
    fallbacks: [...(decided.decision.obligations?.fallbacks ?? [])],
    countedRequests: new Set(holds.map(counterOf)),
    isEnding: false,
  };
}

export function startAttempt(candidate: Candidate, startedAt: number): RunningAttempt {
  return {
    candidate,
    fold: createFold(),
    controller: new AbortController(),
    startedAt,
    host: null,
    bodySha256: null,
    providerRequestId: null,
    providerModel: null,
    systemFingerprint: null,
    toolCalls: 0,
    isVisible: false,
    hasReasoned: false,
    hasWrittenOn: false,
    hasEnded: false,
    firstTokenAt: null,
  };
}

/** One counter of one budget, as a key. */
export function counterOf({ budgetId, subject, periodStart }: Hold): string {
  return JSON.stringify([budgetId, subject, periodStart]);
}

/** Stops the run; the first reason stands. */
export function stopRun(run: Run, reason: ClientClosed | ProviderError): void {
  if (run.stopReason !== null || run.isEnding) return;
  run.stopReason = reason;
  run.attempt.controller.abort(reason);
}

/** Notes an event; true when it is for the client to see now. */
export function observe(attempt: RunningAttempt, event: CompletionEvent, now: number): boolean {
  switch (event.type) {
    case "request-sent":
      attempt.host = event.host;
      attempt.bodySha256 = event.bodySha256;
      return false;
    case "answer-started":
      attempt.providerRequestId = event.providerRequestId ?? null;
      attempt.providerModel = event.providerModel ?? null;
      attempt.systemFingerprint = event.systemFingerprint ?? null;
      return false;
    case "usage":
      attempt.hasWrittenOn = false;
      attempt.fold.add(event);
      return false;
    case "finish":
      attempt.fold.add(event);
      return false;
    case "tool-call-started":
      attempt.toolCalls++;
  }
  if (event.type === "reasoning-delta" || event.type === "state") attempt.hasReasoned = true;
  else if (event.type !== "logprobs") attempt.isVisible = true;
  if (event.type !== "state" && event.type !== "logprobs") attempt.hasWrittenOn = true;
  attempt.fold.add(event);
  attempt.firstTokenAt ??= now;
  return true;
}

/** What was seen of what the model has written so far. */
export function seenOf(attempt: RunningAttempt): SeenOutput {
  const { fold, isVisible, hasReasoned, hasWrittenOn } = attempt;
  return {
    tokens: tokensOfBytes(fold.outputBytes()),
    isVisible: isVisible && fold.outputBytes() > 0,
    hasReasoned: hasReasoned || (fold.usage().reasoningTokens ?? 0) > 0,
    isFinished: fold.finishReason() !== null && !hasWrittenOn,
  };
}

/** Whatever ended an attempt, as the reason it counts for. */
export function failureOf(run: Run, thrown: unknown): ClientClosed | ProviderError {
  if (run.stopReason !== null) return run.stopReason;
  const reason: unknown = run.attempt.controller.signal.reason;
  if (reason instanceof ProviderError) return reason;
  if (thrown instanceof ProviderError || thrown instanceof ClientClosed) return thrown;
  return new ProviderError("The provider failed.", {
    reason: "provider_fault",
    delivery: run.attempt.host === null ? "not-sent" : "unknown",
    cause: thrown,
  });
}
