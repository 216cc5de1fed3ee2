import { GatewayError, toGatewayError } from "../errors/gateway-error.ts";
import type { HeaderNames } from "./context.ts";
import type { GovernedAnswer } from "./governed-call.ts";

/** The values that every answer after a decision carries. */
interface DecisionMark {
  readonly dataClass: string;
  readonly decisionId: string;
  /** Absent if no Step was opened. */
  readonly stepId?: string;
}

/** An error of a request after its decision. */
export class DecidedError extends GatewayError {
  readonly decisionId: string;
  readonly stepId: string | null;

  constructor(mark: DecisionMark, ...error: ConstructorParameters<typeof GatewayError>) {
    super(...error);
    this.decisionId = mark.decisionId;
    this.stepId = mark.stepId ?? null;
  }
}

/** Adds the headers of the decision, and what rate limits have left. */
export function answerHeaders(
  names: HeaderNames,
  answer: GovernedAnswer,
  headers: Record<string, string>,
): Record<string, string> {
  decisionHeaders(names, answer, headers);
  return answer.rateLimits === null ? headers : Object.assign(headers, answer.rateLimits);
}

/** Adds the headers of the decision, and of the model that served the answer if it is known. */
export function decisionHeaders(
  { sent }: HeaderNames,
  answer: GovernedAnswer,
  headers: Record<string, string>,
): Record<string, string> {
  headers[sent.dataSensitivity] = answer.dataClass;
  headers[sent.policyDecisionId] = answer.decisionId;
  const model = answer.servedBy();
  if (model !== null) headers[sent.model] = headerText(model);
  return headers;
}

/** A model's name may contain any character, but a header only ASCII. */
function headerText(model: string): string {
  return /^[\x21-\x7e]*$/.test(model) ? model : model.replace(/[^\x21-\x7e]/gu, encodeURIComponent);
}

/** The same error with the headers of the decision. */
export function withDecision(
  thrown: unknown,
  names: HeaderNames,
  mark: DecisionMark,
): GatewayError {
  const error = toGatewayError(thrown);
  return new DecidedError(mark, error.code, error.message, {
    status: error.status,
    wireCode: error.wireCode,
    ...(error.param === null ? {} : { param: error.param }),
    headers: {
      ...error.headers,
      [names.sent.dataSensitivity]: mark.dataClass,
      [names.sent.policyDecisionId]: mark.decisionId,
    },
    cause: error.cause ?? thrown,
  });
}
