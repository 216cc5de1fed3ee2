import { ProviderError } from "../contracts/provider.ts";
import { tokensOfBytes } from "../domain/estimate.ts";
import { answerEvents } from "./answer-events.ts";
import type { GovernedAnswer, PreparedCall } from "./governed-call.ts";
import type { Line } from "./line.ts";
import type { OpenedStep } from "./open-step.ts";
import { ClientClosed, createRun, type Run, stopRun } from "./run.ts";
import { sharedEvents } from "./shared-events.ts";

/** The answer of an opened Step: nothing is asked of the provider until its events are. */
export function answerOf(line: Line, call: PreparedCall, opened: OpenedStep): GovernedAnswer {
  const run = createRun(call, opened, line.clock.monotonic());
  const stop = (reason: ProviderError): void => {
    stopRun(run, reason);
    // A client that does not read on would leave the Step open.
    void readOn(events);
  };
  const cancelDeadline = line.clock.after(line.deadlines.total, () => stop(deadlinePassed()));
  const abandon = (): void => leave(line, run, events);
  const finish = (): void => {
    cancelDeadline();
    call.signal.removeEventListener("abort", abandon);
  };
  const events = sharedEvents(answerEvents(line, run, finish));
  line.openSteps.add(opened.answer.stepId, {
    outputTokens: () => tokensOfBytes(run.attempt.fold.outputBytes()),
    stop: () => stop(gatewayClosed()),
  });
  if (call.signal.aborted) abandon();
  else call.signal.addEventListener("abort", abandon, { once: true });
  return { ...opened.answer, events, abandon };
}

/** The client left: the provider's call ends, or is read on to its end within a bound of time and of number. */
function leave(line: Line, run: Run, events: GovernedAnswer["events"]): void {
  if (run.isAbandoned) return;
  run.isAbandoned = true;
  const closed = new ClientClosed("the client closed its connection");
  const isDraining = line.onDisconnect === "drain" && line.drains.take();
  if (!isDraining) stopRun(run, closed);
  const cancel = line.clock.after(line.deadlines.drain, () => stopRun(run, closed));
  // Nobody else may be asking for events any more, and the Step is settled only by its events' end.
  void readOn(events).finally(() => {
    cancel();
    if (isDraining) line.drains.release();
  });
}

async function readOn(events: GovernedAnswer["events"]): Promise<void> {
  try {
    while (!(await events.next()).done);
  } catch {
    // The Step is settled, and nobody is left to tell.
  }
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
