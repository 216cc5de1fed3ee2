import { PostgresFailure } from "../database/failure.ts";

/** Work of the lane; `failure` is what became of others, or null. Resolves, and never rejects, with how it failed or null. */
export type LaneWork = (failure: unknown) => Promise<unknown>;

/** How many transactions of single decisions may run at once: each holds a connection that the others need as well. */
const mostAtOnce = 4;

/** Decisions that need a transaction of their own take turns, first come first served. */
export class Lane {
  readonly #waiting: LaneWork[] = [];
  readonly #listeners: (() => void)[] = [];
  #running = 0;

  get isFull(): boolean {
    return this.#running >= mostAtOnce;
  }

  run(work: LaneWork): void {
    if (this.isFull) this.#waiting.push(work);
    else this.#start(work);
  }

  /** Calls when some work ended. */
  listen(listener: () => void): void {
    this.#listeners.push(listener);
  }

  #start(work: LaneWork): void {
    this.#running++;
    void work(null).then((failure) => {
      this.#running--;
      // Who waited meanwhile would wait as long again for each.
      if (isTimeout(failure)) for (const other of this.#waiting.splice(0)) void other(unheard());
      const next = this.#waiting.shift();
      if (next) this.#start(next);
      for (const listener of this.#listeners) listener();
    });
  }
}

export function isTimeout(error: unknown): boolean {
  return error instanceof PostgresFailure && error.kind.isTimeout;
}

/** What a wait in vain was for those that were not sent. */
export function unheard(): PostgresFailure {
  return new PostgresFailure("the server does not answer", { isPassing: true, isTimeout: true });
}
