import type { CompletionEvent } from "@tollgate/core/provider";
import { createAnswer } from "./answer.ts";
import type { Part } from "./ask.ts";
import { invalidAnswer } from "./failures.ts";
import { untilAborted } from "./until-aborted.ts";

/** Reads an answer as events: the parts as they come, until the model stopped. */
export async function* readAnswer(
  asked: Promise<AsyncIterator<Part>>,
  signal: AbortSignal,
): AsyncGenerator<readonly CompletionEvent[], void, undefined> {
  const parts = await untilAborted(signal, () => asked);
  const answer = createAnswer();
  try {
    while (!answer.finished()) {
      const next = await untilAborted(signal, () => parts.next());
      if (next.done === true)
        throw invalidAnswer("answer_cut", "The provider's answer ended before it was complete.");
      const events: CompletionEvent[] = [];
      answer.add(next.value, events);
      if (events.length > 0) yield events;
    }
  } finally {
    // Not awaited: the call's own signal has closed what a slow iterator would still hold.
    void parts.return?.().catch(() => {});
  }
}
