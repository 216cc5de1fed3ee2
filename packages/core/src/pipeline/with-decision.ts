import { GatewayError, toGatewayError } from "../errors/gateway-error.ts";
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
