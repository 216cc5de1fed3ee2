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
export async function surely<Result>(
  clock: Clock,
  write: () => Promise<Result>,
): Promise<Written<Result>> {
  let isRepeated = false;
  for (const wait of waits) {
    try {
      return { result: await write(), isRepeated };
    } catch (error) {
      if (error instanceof GatewayError) throw error;
      isRepeated = true;
      await sleep(clock, wait);
    }
  }
  return { result: await write(), isRepeated };
}
