import { GatewayError, toGatewayError } from "../errors/gateway-error.ts";
import type { GovernedAnswer } from "./governed-call.ts";
import type { HeaderNames } from "./line.ts";

/** What every answer says that got as far as a decision. */
export interface DecisionMark {
  readonly dataClass: string;
  readonly decisionId: string;
  /** Absent where no Step was opened. */
  readonly stepId?: string;
}

/** An error of a request that got as far as a decision. */
export class DecidedError extends GatewayError {
  readonly decisionId: string;
  readonly stepId: string | null;

  constructor(mark: DecisionMark, ...error: ConstructorParameters<typeof GatewayError>) {
    super(...error);
    this.decisionId = mark.decisionId;
    this.stepId = mark.stepId ?? null;
  }
}

/** The two response headers of section 5.3. */
export function decisionHeaders(
  names: HeaderNames,
  mark: DecisionMark,
): Readonly<Record<string, string>> {
  return {
    [names.dataSensitivity.toLowerCase()]: mark.dataClass,
    [names.policyDecisionId.toLowerCase()]: mark.decisionId,
  };
}

/** The headers of an answer: those of its decision, and the model that served it where that is known by then. */
export function answerHeaders(
  names: HeaderNames,
  answer: GovernedAnswer,
): Readonly<Record<string, string>> {
  const model = answer.servedBy();
  return {
    ...decisionHeaders(names, answer),
    // A model's name may have any letters, and a header has ASCII.
    ...(model !== null && {
      [names.model.toLowerCase()]: model.replace(/[^\x21-\x7e]/gu, encodeURIComponent),
    }),
  };
}

/** The same error with the two headers, for denials and failures after the decision. */
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
    headers: { ...error.headers, ...decisionHeaders(names, mark) },
    cause: error.cause ?? thrown,
  });
}
