import { ProviderError } from "../contracts/provider.ts";
import { formatModelId } from "../domain/model-id.ts";
import { outputToldBy } from "../evidence/meter.ts";
import type { GovernedAnswer, PreparedCall, SettledAnswer, TakeEvents } from "./governed-call.ts";
import type { Line } from "./line.ts";
import type { OpenedStep } from "./open-step.ts";
import { ClientClosed, createRun, type Run, seenOf, stopRun } from "./run.ts";
import { runAnswer } from "./run-answer.ts";

/** The answer of an opened Step: nothing is asked of the provider until it is read. */
export function answerOf(line: Line, call: PreparedCall, opened: OpenedStep): GovernedAnswer {
  const run = createRun(call, opened, line.clock.monotonic());
  let isReleased = false;
  let release = (): void => {};
  let running: Promise<SettledAnswer> | null = null;
  const finish = (): void => {
    cancelDeadline();
    call.signal.removeEventListener("abort", abandon);
  };
  const read = (take: TakeEvents): Promise<SettledAnswer> => {
    running ??= runAnswer(line, run, finish, (events) => {
      if (run.isAbandoned) return null;
      const room = take(events);
      return room && roomOrReleased(room);
    });
    return running;
  };
  /** No race with one promise for all waits, which would remember each of them until the answer ends. */
  const roomOrReleased = (room: Promise<void>): Promise<void> =>
    new Promise((resolve, reject) => {
      release = resolve;
      if (isReleased) release();
      room.then(resolve, reject);
    });
  /** Goes on without the client: one that reads no further, or nobody at all, would leave the Step open. */
  const readOn = (): Promise<unknown> => {
    isReleased = true;
    release();
    // The Step is settled, and nobody is left to hear of a failure.
    return read(() => null).catch(() => {});
  };
  const stop = (reason: ProviderError): void => {
    stopRun(run, reason);
    void readOn();
  };
  const abandon = (): void => leave(line, run, readOn);
  const cancelDeadline = line.clock.after(line.deadlines.total, () => stop(deadlinePassed()));
  opened.open.runs({
    outputTokens: () => outputToldBy(run.attempt.candidate.attempt, seenOf(run.attempt)),
    stop: () => stop(gatewayClosed()),
  });
  if (call.signal.aborted) abandon();
  else call.signal.addEventListener("abort", abandon, { once: true });
  const systemFingerprint = (): string | null => run.attempt.systemFingerprint;
  // Another attempt can only follow one of which nothing was seen.
  const servedBy = (): string | null =>
    run.attempt.firstTokenAt === null && !run.isEnding
      ? null
      : formatModelId(run.attempt.candidate.attempt);
  const { signal } = call;
  return { ...opened.answer, read, systemFingerprint, servedBy, signal, abandon };
}

/** The client left: the provider's call ends, or is read on to its end within bounds of time and of number. */
function leave(line: Line, run: Run, readOn: () => Promise<unknown>): void {
  if (run.isAbandoned) return;
  run.isAbandoned = true;
  const closed = new ClientClosed("the client closed its connection");
  const key = JSON.stringify([run.opened.owner.organizationId, run.opened.owner.keyId]);
  const isReadOn = mayReadOn(line, run) && line.drains.take(key);
  if (!isReadOn) stopRun(run, closed);
  // A plain answer has its own deadline.
  const cancel = run.call.stream
    ? line.clock.after(line.deadlines.drain, () => stopRun(run, closed))
    : () => {};
  void readOn().finally(() => {
    cancel();
    if (isReadOn) line.drains.release(key);
  });
}

/** Only its end says what such an answer costs: a plain one shows nothing before, and reasoning is never all shown. */
function mayReadOn({ onDisconnect }: Line, { call, attempt }: Run): boolean {
  if (onDisconnect === "abort" || attempt.host === null || attempt.hasEnded) return false;
  return (
    onDisconnect === "drain" ||
    !call.stream ||
    attempt.candidate.attempt.reasons ||
    seenOf(attempt).hasReasoned
  );
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
