import type { SteppedClock } from "./stepped-clock.ts";

/** Waits for a promise, and advances the clock while it waits. */
export type Drive = <Result>(promise: Promise<Result>) => Promise<Result>;

const maxSeconds = 600;

export function createDriver(clock: SteppedClock, rest: () => Promise<void>): Drive {
  return async (promise) => {
    let isSettled = false;
    const settle = (): void => {
      isSettled = true;
    };
    promise.then(settle, settle);
    await rest();
    for (let waited = 0; !isSettled; waited++) {
      if (waited === maxSeconds) throw new Error(`nothing arrived within ${maxSeconds} seconds`);
      await clock.advance(1_000);
    }
    return promise;
  };
}
