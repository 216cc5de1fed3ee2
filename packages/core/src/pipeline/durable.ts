import { GatewayError } from "../errors/gateway-error.ts";

/** Waits for the store; whatever it fails with, the record could not be written and the request cannot go on. */
export function orUnavailable<Result>(writing: Promise<Result>): Promise<Result> {
  return writing.catch((cause: unknown) => {
    throw unrecorded(cause);
  });
}

/** What a request fails with whose record could not be written. */
export function unrecorded(cause: unknown): GatewayError {
  return cause instanceof GatewayError ? cause : evidenceUnavailable(cause);
}

export function evidenceUnavailable(
  cause: unknown,
  message = "The record of this request cannot be written, so it was not completed.",
): GatewayError {
  return new GatewayError("evidence_unavailable", message, { cause });
}
