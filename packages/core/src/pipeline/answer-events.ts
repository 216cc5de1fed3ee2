import { untilAborted } from "../attempts/until-aborted.ts";
import { createWatchdog } from "../attempts/watchdog.ts";
import { ProviderError } from "../contracts/provider.ts";
import type { CompletionEvent, FinishReason } from "../domain/completion-event.ts";
import type { SettledAnswer } from "./governed-call.ts";
import type { Line } from "./line.ts";
import { nextAttempt } from "./next-attempt.ts";
import { ClientClosed, failureOf, observe, type Run } from "./run.ts";
import { settleCompleted, settleEnded } from "./settle.ts";
import { visibleFailure } from "./visible-failure.ts";

type Events = AsyncGenerator<readonly CompletionEvent[], SettledAnswer>;

/** The visible events of a Step, attempt after attempt, and its settlement, in whichever way it ends. */
export async function* answerEvents(line: Line, run: Run, finish: () => void): Events {
  try {
    for (;;) {
      try {
        const finishReason = yield* attemptEvents(line, run);
        return await settleCompleted(line, run, finishReason);
      } catch (thrown) {
        if (run.isEnding) throw thrown;
        run.attempt = await nextAttempt(line, run, failureOf(run, thrown));
      }
    }
  } catch (thrown) {
    if (!run.isEnding) await settleEnded(line, run, failureOf(run, thrown));
    throw visibleFailure(line, run, thrown);
  } finally {
    finish();
    // The consumer ended the iteration itself.
    if (!run.isEnding)
      await settleEnded(line, run, new ClientClosed("the answer was not read to its end"));
  }
}

async function* attemptEvents(
  line: Line,
  run: Run,
): AsyncGenerator<readonly CompletionEvent[], FinishReason> {
  const { attempt } = run;
  // Who left while the Step was being opened has asked nothing of the provider, and is charged nothing.
  if (run.stopReason !== null) throw run.stopReason;
  const { clock, deadlines } = line;
  const watchdog = createWatchdog(clock, deadlines, () => attempt.controller.abort(silent()));
  try {
    for await (const events of untilAborted(callProvider(line, run), attempt.controller.signal)) {
      const now = clock.monotonic();
      const visible = events.filter((event) => observe(attempt, event, now));
      if (events.some((event) => event.type !== "request-sent")) watchdog.heard();
      if (visible.length === 0) continue;
      watchdog.pause();
      yield visible;
      watchdog.heard();
    }
  } finally {
    watchdog.stop();
  }
  const finishReason = attempt.fold.finishReason();
  if (finishReason === null) throw cut();
  return finishReason;
}

function callProvider(line: Line, run: Run): AsyncIterable<readonly CompletionEvent[]> {
  const { candidate, controller } = run.attempt;
  const { provider, model } = candidate.decided.route;
  return provider.complete({
    model: `${model.vendor}/${model.model}`,
    request: candidate.request,
    stream: run.call.stream,
    credential: null,
    signal: controller.signal,
    limits: { eventBytes: line.limits.upstreamEventBytes, totalBytes: line.limits.upstreamBytes },
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
