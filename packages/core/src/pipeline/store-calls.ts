import { GatewayError } from "../errors/gateway-error.ts";
import { type Clock, sleep } from "../kernel/clock.ts";
import { yieldToEventLoop } from "../kernel/event-loop.ts";

/** Waits for the store. If it fails, the record could not be written and the request can't continue. */
export function orUnavailable<Result>(writing: Promise<Result>): Promise<Result> {
  return writing.catch((cause: unknown) => {
    throw unrecorded(cause);
  });
}

/**
 * Reads stored content, which may be large. A store in this process reads it at once, so each read waits for its turn of the
 * event loop.
 */
export async function readContent<Content>(read: () => Promise<Content>): Promise<Content> {
  await yieldToEventLoop();
  return orUnavailable(read());
}

/** The error for a request that could not be recorded. */
export function unrecorded(cause: unknown): GatewayError {
  return cause instanceof GatewayError ? cause : evidenceUnavailable(cause);
}

export function evidenceUnavailable(
  cause: unknown,
  message = "The request could not be recorded, so it was not completed.",
): GatewayError {
  return new GatewayError("evidence_unavailable", message, { cause });
}

/** Milliseconds before each retry. */
const waits = [50, 200, 800, 2_000];

/**
 * Retries a write whose outcome is unknown, a bounded number of times. The write must be safe to repeat. A `GatewayError`
 * is the store's own answer, so it isn't retried.
 */
export function retryUnknownOutcome<Result>(
  clock: Clock,
  write: () => Promise<Result>,
): Promise<Result> {
  return write().catch((failure: unknown) => retryWrite(clock, write, failure));
}

/** Retries after the first failure. */
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
