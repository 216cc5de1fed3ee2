import { untilAborted } from "../attempts/until-aborted.ts";
import { createWatchdog } from "../attempts/watchdog.ts";
import { ProviderError } from "../contracts/provider.ts";
import type { CompletionEvent } from "../domain/completion-event.ts";
import { stateOrigin } from "../domain/provider-state.ts";
import { otherWork } from "../kernel/other-work.ts";
import { sealFields } from "../sessions/state-seal.ts";
import { createAnswerIntake } from "./answer-intake.ts";
import { callProvider } from "./call-provider.ts";
import type { TakeEvents } from "./governed-call.ts";
import type { Line } from "./line.ts";
import { observe, type Run } from "./run.ts";

/** After so many events what else waits for the process has its turn: a provider may have them all at hand. */
const mostAtOnce = 256;

/**
 * Asks the provider of the running attempt and hands on what the client is to see, up to the attempt's end. While the
 * client is what is waited for, the provider's silence does not count.
 */
export async function readAttempt(line: Line, run: Run, take: TakeEvents): Promise<void> {
  const { attempt } = run;
  const { clock, deadlines } = line;
  const reading = untilAborted(callProvider(line, run), attempt.controller.signal);
  const { stream, endpoint } = run.call;
  const intake = createAnswerIntake(line.limits, !stream || endpoint === "responses");
  let handled = 0;
  // A plain answer comes all at once, and whatever its provider sends before says nothing.
  const bounds = stream
    ? deadlines
    : { firstByte: deadlines.plainAnswer, idle: deadlines.plainAnswer };
  const watchdog = createWatchdog(clock, bounds, () => attempt.controller.abort(silent()));
  try {
    for (;;) {
      const failure = intake.failure(attempt.fold.outputBytes(), attempt.fold.stateSize());
      if (failure !== null) throw failure;
      const { done, value: events } = await reading.next();
      if (done) return;
      handled += events.length;
      if (handled > mostAtOnce) {
        handled = 0;
        await otherWork();
      }
      const now = clock.monotonic();
      const visible: CompletionEvent[] = [];
      for (const event of intake.take(events))
        if (observe(attempt, event, now)) visible.push(sealed(run, event));
      if (visible.length > 0) {
        watchdog.pause();
        const room = take(visible);
        if (room !== null) await room;
        watchdog.resume();
      } else if (stream && events.some((event) => event.type !== "request-sent")) watchdog.heard();
    }
  } finally {
    watchdog.stop();
    reading.stop();
  }
}

/** What only the provider can read leaves sealed. */
function sealed({ attempt, call }: Run, event: CompletionEvent): CompletionEvent {
  if (event.type !== "state") return event;
  const origin = stateOrigin(attempt.candidate.attempt);
  return { ...event, fields: sealFields(call.state.seal, origin, event.fields) };
}

function silent(): ProviderError {
  return new ProviderError("The provider stopped answering.", {
    reason: "silent",
    delivery: "unknown",
    timedOut: true,
  });
}
