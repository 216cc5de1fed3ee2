import type { Answer } from "../http/answer.ts";
import { unlessAborted } from "../http/read-bytes.ts";
import type { GovernedAnswer, SettledAnswer } from "../pipeline/governed-call.ts";
import type { Line } from "../pipeline/line.ts";
import { answerHeaders } from "../pipeline/with-decision.ts";
import { jsonHeaders } from "./endpoint.ts";

/** A governed answer as a plain body: the fold of the same events that a stream would send. */
export async function presentBody(
  line: Line,
  answer: GovernedAnswer,
  bodyOf: (settled: SettledAnswer) => string,
): Promise<Answer> {
  const body = bodyOf(
    await unlessAborted(
      answer.signal,
      answer.read(() => null),
    ),
  );
  return {
    status: 200,
    headers: { ...jsonHeaders, ...answerHeaders(line.headerNames, answer) },
    body,
  };
}
