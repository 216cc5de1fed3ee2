import { PostgresFailure } from "../database/failure.ts";

/** Work that waits for the lane. */
export interface LaneWork {
  /** Never rejects. Resolves with its error, or null. */
  run(): Promise<unknown>;
  reject(error: unknown): void;
}

/** An entry of a queue. `timedOutAfter` is the latest run that had begun when a run first timed out while it waited. */
export interface Queued {
  timedOutAfter: number | null;
  reject(error: unknown): void;
}

/**
 * Returns what stays in a queue after a run has timed out. The server may be back, and if all entries ran at once they would
 * wait too long for connections. An entry that sees a second run time out is rejected, so its caller hears within seconds.
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

/** Transactions that run at once. Each holds a connection that others need. */
const maxRunning = 4;

/** Runs decisions that need their own transaction, a few at once, first come, first served. */
export class Lane {
  #waiting: (Queued & Pick<LaneWork, "run">)[] = [];
  readonly #listeners: (() => void)[] = [];
  #running = 0;
  #latestRun = 0;

  get isFull(): boolean {
    return this.#running >= maxRunning;
  }

  /** How much work waits. */
  get waiting(): number {
    return this.#waiting.length;
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

  /** Calls `listener` whenever work ends. */
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

/** Whether the server did not answer in time, and may answer next time. */
export function isTimeout(error: unknown): boolean {
  return error instanceof PostgresFailure && error.kind.isTimeout && error.kind.isPassing;
}

/** The error of calls that were never sent because others timed out. */
export function noAnswer(): PostgresFailure {
  return new PostgresFailure("the server does not answer", { isPassing: true, isTimeout: true });
}
