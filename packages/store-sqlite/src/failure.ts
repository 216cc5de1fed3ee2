import { randomInt } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

/** SQLite's primary result code for a lock held by another connection. */
const busy = 5;

/** Whether another connection holds the lock this one needs. */
export function isBusy(thrown: unknown): boolean {
  if (!(thrown instanceof Error)) return false;
  // node:sqlite has the extended code as a number, better-sqlite3 has its name.
  const number: unknown = Reflect.get(thrown, "errcode");
  if (typeof number === "number") return (number & 0xff) === busy;
  const name: unknown = Reflect.get(thrown, "code");
  return typeof name === "string" && /^SQLITE_BUSY(_|$)/.test(name);
}

/** A failure of the database, with SQLite's own error as the cause. */
export function storeFailure(problem: string, cause?: unknown): Error {
  const detail = cause instanceof Error ? `: ${cause.message}` : "";
  return new Error(`SQLite store: ${problem}${detail}`, cause === undefined ? {} : { cause });
}

/** Limits of waiting for another process's lock, in milliseconds. */
const maxWait = 2_000;
const minPause = 1;
export const maxPause = 4;

/**
 * Retries while another connection holds the lock, and rejects after two seconds. SQLite's own wait would block the event
 * loop, so this waits in short pauses of random length.
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
