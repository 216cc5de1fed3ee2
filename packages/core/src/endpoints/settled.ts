import type { GovernedAnswer, SettledAnswer } from "../pipeline/governed-call.ts";

/** Reads an answer to its end, for a plain body. */
export async function settled({ events }: GovernedAnswer): Promise<SettledAnswer> {
  for (;;) {
    const { done, value } = await events.next();
    if (done) return value;
  }
}
