import { GatewayError } from "../errors/gateway-error.ts";
import { type Clock, sleep } from "../kernel/clock.ts";

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
