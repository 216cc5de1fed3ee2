import { GatewayError } from "../errors/gateway-error.ts";
import { type Clock, sleep } from "../kernel/clock.ts";

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

/** Milliseconds before each further try. */
const waits = [50, 200, 800, 2_000];

/**
 * Writes what is safe to write again: an unknown outcome is simply tried once more, a bounded number of times. What the
 * store refuses in so many words, it would refuse again.
 */
export function retryUnknownOutcome<Result>(
  clock: Clock,
  write: () => Promise<Result>,
): Promise<Result> {
  return write().catch((failure: unknown) => retryWrite(clock, write, failure));
}

/** What `surely` does once a write has failed. */
export async function retryWrite<Result>(
  clock: Clock,
  write: () => Promise<Result>,
  failure: unknown,
): Promise<Result> {
  let last = failure;
  for (const wait of waits) {
    if (last instanceof GatewayError) throw last;
    await sleep(clock, wait);
    try {
      return await write();
    } catch (error) {
      last = error;
    }
  }
  throw last;
}
