import { GatewayError } from "../errors/gateway-error.ts";
import { type Clock, sleep } from "../kernel/clock.ts";

/** What was written in the end, and whether an earlier try had an unknown outcome. */
export interface Written<Result> {
  readonly result: Result;
  readonly isRepeated: boolean;
}

/** Milliseconds before each further try. */
const waits = [50, 200, 800, 2_000];

/**
 * Writes what is safe to write again: an unknown outcome is simply tried once more, a bounded number of times. What the
 * store refuses in so many words, it would refuse again.
 */
export function surely<Result>(
  clock: Clock,
  write: () => Promise<Result>,
): Promise<Written<Result>> {
  return write().then(
    (result) => ({ result, isRepeated: false }),
    (failure: unknown) => writeAgain(clock, write, failure),
  );
}

async function writeAgain<Result>(
  clock: Clock,
  write: () => Promise<Result>,
  failure: unknown,
): Promise<Written<Result>> {
  let last = failure;
  for (const wait of waits) {
    if (last instanceof GatewayError) throw last;
    await sleep(clock, wait);
    try {
      return { result: await write(), isRepeated: true };
    } catch (error) {
      last = error;
    }
  }
  throw last;
}
