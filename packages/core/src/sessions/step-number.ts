import type { Message } from "../domain/message.ts";

/** The assistant messages after the last user message of a POST; all of them where there is no user message (section 2.8). */
export function stepNumberOf(messages: readonly Message[]): number {
  let count = 0;
  for (const message of messages) {
    if (message.role === "user") count = 0;
    else if (message.role === "assistant") count++;
  }
  return count;
}
