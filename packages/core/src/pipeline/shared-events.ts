import type { CompletionEvent } from "../domain/completion-event.ts";
import type { AnswerEvents, SettledAnswer } from "./governed-call.ts";

/**
 * The events of an answer for whoever asks for them: the client's stream, and what reads on when nobody else does.
 * Each event goes to one of them; how the answer ended is told to all, however late they ask.
 */
export function sharedEvents(
  events: AsyncGenerator<readonly CompletionEvent[], SettledAnswer>,
): AnswerEvents {
  let failure: { readonly thrown: unknown } | null = null;
  let settled: IteratorReturnResult<SettledAnswer> | null = null;
  return {
    async next() {
      try {
        const result = await events.next();
        if (!result.done) return result;
        // A generator says how it ended only once, and before it answers whoever asked after that.
        if (failure !== null) throw failure.thrown;
        settled ??= result;
        return settled;
      } catch (thrown) {
        failure ??= { thrown };
        throw thrown;
      }
    },
  };
}
