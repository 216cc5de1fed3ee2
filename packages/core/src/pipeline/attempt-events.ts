import { type Reading, untilAborted } from "../attempts/until-aborted.ts";
import { createWatchdog } from "../attempts/watchdog.ts";
import { ProviderError } from "../contracts/provider.ts";
import type { CompletionEvent } from "../domain/completion-event.ts";
import type { Line } from "./line.ts";
import { observe, type Run } from "./run.ts";

/** The running attempt's answer as it arrives. */
export interface AttemptEvents {
  /** What the client is to see next; null at the end. */
  next(): Promise<readonly CompletionEvent[] | null>;
  stop(): void;
}

/**
 * Asks the provider. While the client is what is waited for, from one call of `next` to another, the provider's silence
 * does not count.
 */
export function attemptEvents(line: Line, run: Run): AttemptEvents {
  const { attempt } = run;
  const { clock, deadlines } = line;
  const reading = callProvider(line, run);
  const watchdog = createWatchdog(clock, deadlines, () => attempt.controller.abort(silent()));
  return {
    async next() {
      watchdog.resume();
      for (;;) {
        const { done, value: events } = await reading.next();
        if (done) return null;
        const now = clock.monotonic();
        const visible = events.filter((event) => observe(attempt, event, now));
        if (visible.length > 0) {
          watchdog.pause();
          return visible;
        }
        if (events.some((event) => event.type !== "request-sent")) watchdog.heard();
      }
    },
    stop() {
      watchdog.stop();
      reading.stop();
    },
  };
}

function callProvider(line: Line, run: Run): Reading<readonly CompletionEvent[]> {
  const { candidate, controller } = run.attempt;
  const { provider, model } = candidate.decided.route;
  const events = provider.complete({
    model: `${model.vendor}/${model.model}`,
    request: candidate.request,
    stream: run.call.stream,
    credential: null,
    signal: controller.signal,
    limits: { eventBytes: line.limits.upstreamEventBytes, totalBytes: line.limits.upstreamBytes },
  });
  return untilAborted(events, controller.signal);
}

function silent(): ProviderError {
  return new ProviderError("The provider stopped answering.", {
    reason: "silent",
    delivery: "unknown",
    timedOut: true,
  });
}
