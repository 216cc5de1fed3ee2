import { ProviderError } from "../contracts/provider.ts";
import type { FinishReason } from "../domain/completion-event.ts";
import type { SettledAnswer, TakeEvents } from "./governed-call.ts";
import type { Line } from "./line.ts";
import { nextAttempt } from "./next-attempt.ts";
import { readAttempt } from "./read-attempt.ts";
import { ClientClosed, failureOf, type Run } from "./run.ts";
import { settleCompleted, settleEnded } from "./settle.ts";
import { visibleFailure } from "./visible-failure.ts";

/**
 * Asks for a Step's answer, attempt after attempt, hands its visible events on, and settles it, in whichever way it ends.
 */
export async function runAnswer(
  line: Line,
  run: Run,
  finish: () => void,
  take: TakeEvents,
): Promise<SettledAnswer> {
  try {
    for (;;) {
      try {
        // Who left while the Step was being opened has asked nothing of the provider, and is charged nothing.
        if (run.stopReason !== null) throw run.stopReason;
        await readAttempt(line, run, take);
        const finishReason = finishReasonOf(run);
        if (run.isAbandoned)
          throw new ClientClosed("the client left before its answer was complete");
        return await settleCompleted(line, run, finishReason);
      } catch (thrown) {
        if (run.isEnding) throw thrown;
        run.attempt.hasEnded = true;
        const failure = failureOf(run, thrown);
        tellFailedAttempt(line, run, failure);
        run.attempt = await nextAttempt(line, run, failure);
      }
    }
  } catch (thrown) {
    if (!run.isEnding) await settleEnded(line, run, failureOf(run, thrown));
    throw visibleFailure(line, run, thrown);
  } finally {
    finish();
  }
}

/** Whether another attempt follows or not, and however much of this one the client has seen. */
function tellFailedAttempt(line: Line, run: Run, failure: ClientClosed | ProviderError): void {
  if (!(failure instanceof ProviderError)) return;
  line.notify({
    type: "attempt.failed",
    at: line.clock.now(),
    organizationId: run.opened.owner.organizationId,
    stepId: run.opened.answer.stepId,
    attempt: run.attempt.candidate.attempt.number,
    reason: failure.reason,
  });
}

function finishReasonOf({ attempt }: Run): FinishReason {
  const finishReason = attempt.fold.finishReason();
  if (finishReason !== null) return finishReason;
  throw new ProviderError("The provider's answer ended before it was complete.", {
    reason: "cut",
    delivery: "unknown",
  });
}
