import { PostgresFailure } from "../database/failure.ts";

/** Work that waits for the lane. */
export interface LaneWork {
  /** Resolves, and never rejects, with how it failed or null. */
  run(): Promise<unknown>;
  reject(error: unknown): void;
}

/** Something in a queue, and the last run that had begun when an earlier one timed out before its eyes; null before. */
export interface Queued {
  timedOutAfter: number | null;
  reject(error: unknown): void;
}

/**
 * What stays in a queue when a run has timed out: the server may just be back, and all at once they would keep each other
 * from a connection. What has seen a run before time out is rejected, so that its caller hears within seconds.
 */
export function afterTimeout<One extends Queued>(
  queue: readonly One[],
  { run, latestRun }: { readonly run: number; readonly latestRun: number },
): One[] {
  return queue.filter((queued) => {
    const hasWaited = queued.timedOutAfter !== null && run > queued.timedOutAfter;
    if (hasWaited) queued.reject(noAnswer());
    queued.timedOutAfter ??= latestRun;
    return !hasWaited;
  });
}

/** How many transactions of single decisions may run at once: each holds a connection that the others need as well. */
const maxRunning = 4;

/** Decisions that need a transaction of their own take turns, first come first served. */
export class Lane {
  #waiting: (Queued & Pick<LaneWork, "run">)[] = [];
  readonly #listeners: (() => void)[] = [];
  #running = 0;
  #latestRun = 0;

  get isFull(): boolean {
    return this.#running >= maxRunning;
  }

  run(work: LaneWork): void {
    if (this.isFull)
      this.#waiting.push({
        timedOutAfter: null,
        run: () => work.run(),
        reject: (error) => work.reject(error),
      });
    else this.#start(work);
  }

  /** Calls when some work ended. */
  listen(listener: () => void): void {
    this.#listeners.push(listener);
  }

  #start(work: Pick<LaneWork, "run">): void {
    this.#running++;
    const run = ++this.#latestRun;
    void work.run().then((failure) => {
      this.#running--;
      if (isTimeout(failure))
        this.#waiting = afterTimeout(this.#waiting, { run, latestRun: this.#latestRun });
      const next = this.#waiting.shift();
      if (next) this.#start(next);
      for (const listener of this.#listeners) listener();
    });
  }
}

/** Whether a wait for the server was in vain that may be worth repeating. */
export function isTimeout(error: unknown): boolean {
  return error instanceof PostgresFailure && error.kind.isTimeout && error.kind.isPassing;
}

/** What a wait in vain was for those that were not sent. */
export function noAnswer(): PostgresFailure {
  return new PostgresFailure("the server does not answer", { isPassing: true, isTimeout: true });
}
