import type { GatewayResponse } from "../http/gateway-response.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import type { GovernedAnswer, SettledAnswer } from "../pipeline/governed-call.ts";
import { answerHeaders } from "../pipeline/with-decision.ts";
import { jsonHeaders } from "./endpoint.ts";

/** A governed answer as a plain body: the fold of the same events that a stream would send. */
export function presentBody(
  context: GatewayContext,
  answer: GovernedAnswer,
  bodyOf: (settled: SettledAnswer) => string,
): Promise<GatewayResponse> {
  const present = (settled: SettledAnswer): GatewayResponse => ({
    status: 200,
    headers: answerHeaders(context.headerNames, answer, jsonHeaders()),
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
