import { PostgresFailure } from "./failure.ts";

/** Retries of a failed call. */
export const maxRetries = 5;
/** Milliseconds before the first retry, doubled for each further one. */
const firstDelay = 20;

/** The wait between attempts, injected so that tests don't have to wait. */
export interface RetryTiming {
  /** A random number from 0 to 1. */
  random(): number;
  pause(milliseconds: number): Promise<unknown>;
}

/** How a call may be retried. */
export interface Repeatable {
  /** Whether the call may run again although an earlier run may have committed. */
  readonly evenIfDone: boolean;
  /** The error of an earlier run. Default null. */
  readonly failure?: unknown;
}

export const anyway: Repeatable = { evenIfDone: true };

/** Runs work until it succeeds, fails for good, or is out of retries. */
export type Retry = <Result>(
  run: (isUnsure: boolean) => Promise<Result>,
  repeatable: Repeatable,
) => Promise<Result>;

/** Waits before a retry, longer each time. */
export type PauseAfter = (retries: number) => Promise<unknown>;

export function createPause({ random, pause }: RetryTiming): PauseAfter {
  return (retries) => pause(firstDelay * 2 ** retries * (0.5 + random()));
}

/**
 * Runs work until it succeeds, fails for good, or is out of retries. `run` receives whether an earlier run may have
 * committed. A timeout is retried only once, so the caller hears within seconds.
 */
export function createRetry(pauseAfter: PauseAfter): Retry {
  return async (run, { evenIfDone, failure = null }) => {
    let isUnsure = false;
    let timeouts = 0;
    for (let repeats = 0; ; repeats++) {
      try {
        if (repeats === 0 && failure !== null) throw failure;
        return await run(isUnsure);
      } catch (error) {
        if (!(error instanceof PostgresFailure)) throw error;
        const { kind } = error;
        isUnsure ||= kind.isUnsure;
        timeouts += kind.isTimeout ? 1 : 0;
        if (!kind.isPassing || (isUnsure && !evenIfDone)) throw error;
        if (repeats === maxRetries || timeouts > 1) throw error;
        await pauseAfter(repeats);
      }
    }
  };
}
