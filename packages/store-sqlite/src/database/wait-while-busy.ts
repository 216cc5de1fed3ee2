import { randomInt } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { isBusy, storeFailure } from "./failure.ts";

/** The longest wait for another process's lock, and the slices it is made of. Milliseconds. */
const maxWait = 2_000;
const minPause = 2;
const maxPause = 25;

/**
 * Runs until another connection's lock does not stand in the way. SQLite's own wait would block the event loop, so
 * the wait is made of short slices of uneven length; after two seconds of them it rejects.
 */
export async function waitWhileBusy<Result>(run: () => Result): Promise<Result> {
  for (let waited = 0; ; ) {
    try {
      return run();
    } catch (error) {
      if (!isBusy(error)) throw error;
      if (waited >= maxWait)
        throw storeFailure("the database stayed locked by another process for 2 seconds", error);
      const pause = randomInt(minPause, maxPause + 1);
      waited += pause;
      await sleep(pause);
    }
  }
}
