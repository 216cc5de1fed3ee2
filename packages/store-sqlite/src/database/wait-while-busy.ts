import { randomInt } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { isBusy, storeFailure } from "./failure.ts";

/** The longest wait for another process's lock, and the slices it is made of. Milliseconds. */
const longestWait = 2_000;
const shortestSlice = 2;
const longestSlice = 25;

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
      if (waited >= longestWait)
        throw storeFailure("the database stayed locked by another process for 2 seconds", error);
      const slice = randomInt(shortestSlice, longestSlice + 1);
      waited += slice;
      await pause(slice);
    }
  }
}
