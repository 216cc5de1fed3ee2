import type { Answer } from "../http/answer.ts";
import type { GovernedAnswer, SettledAnswer } from "../pipeline/governed-call.ts";
import type { Line } from "../pipeline/line.ts";
import { answerHeaders } from "../pipeline/with-decision.ts";
import { jsonHeaders } from "./endpoint.ts";

/** A governed answer as a plain body: the fold of the same events that a stream would send. */
export function presentBody(
  line: Line,
  answer: GovernedAnswer,
  bodyOf: (settled: SettledAnswer) => string,
): Promise<Answer> {
  const present = (settled: SettledAnswer): Answer => ({
    status: 200,
    headers: answerHeaders(line.headerNames, answer, jsonHeaders()),
    body: bodyOf(settled),
  });
  return new Promise((resolve, reject) =>
    answer.read({
      take: () => null,
      completed(settled) {
        try {
          resolve(present(settled));
        } catch (thrown) {
          reject(thrown);
        }
      },
      failed: reject,
      left: () => reject(answer.signal.reason),
    }),
  );
}
