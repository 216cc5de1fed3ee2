import { isLockTimeout, PostgresFailure } from "../database/failure.ts";

/** Runs work in its turn. */
export type TakeTurn = <Result>(work: () => Promise<Result>) => Promise<Result>;

/** The next try of a decision. */
interface LaneWork extends Queued {
  /** Never rejects. Resolves with its error, or null. */
  run(): Promise<unknown>;
  /** Whether an earlier try gave up its wait for a lock. */
  readonly isHeldUp: boolean;
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
/**
 * How many of them may have given up waiting for a lock before. They may have to wait for it again, and others must be
 * able to continue.
 */
const maxHeldUp = 3;

/** Runs decisions that need their own transaction, a few at once, first come, first served. */
export class Lane {
  #waiting: LaneWork[] = [];
  readonly #listeners: ((failure: unknown) => void)[] = [];
  #running = 0;
  #heldUp = 0;
  #latestRun = 0;

  get isFull(): boolean {
    return this.#running >= maxRunning;
  }

  /** How much work waits. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Returns what each try of one decision takes its turn with. `failure` is the error of an earlier try, or null. */
  turns(failure: unknown): TakeTurn {
    let isHeldUp = isLockTimeout(failure);
    let timedOutAfter: number | null = null;
    return (work) =>
      new Promise((resolve, reject) => {
        const run = (): Promise<unknown> =>
          work().then(
            (result) => {
              resolve(result);
              return null;
            },
            (error: unknown) => {
              isHeldUp ||= isLockTimeout(error);
              // The next try has seen this timeout.
              if (isTimeout(error)) timedOutAfter ??= this.#latestRun;
              reject(error);
              return error;
            },
          );
        this.#add({ run, reject, isHeldUp, timedOutAfter });
      });
  }

  /** Calls `listener` whenever work ends, with its error or null. */
  listen(listener: (failure: unknown) => void): void {
    this.#listeners.push(listener);
  }

  #add(work: LaneWork): void {
    if (this.#mayStart(work)) this.#start(work);
    else this.#waiting.push(work);
  }

  #mayStart({ isHeldUp }: LaneWork): boolean {
    return !this.isFull && !(isHeldUp && this.#heldUp >= maxHeldUp);
  }

  #start(work: LaneWork): void {
    const heldUp = work.isHeldUp ? 1 : 0;
    this.#running++;
    this.#heldUp += heldUp;
    const run = ++this.#latestRun;
    void work.run().then((failure) => {
      this.#running--;
      this.#heldUp -= heldUp;
      if (isTimeout(failure))
        this.#waiting = afterTimeout(this.#waiting, { run, latestRun: this.#latestRun });
      const at = this.#waiting.findIndex((one) => this.#mayStart(one));
      if (at >= 0) for (const next of this.#waiting.splice(at, 1)) this.#start(next);
      for (const listener of this.#listeners) listener(failure);
    });
  }
}

/** Whether the server did not answer in time, and may answer next time. */
export function isTimeout(error: unknown): boolean {
  return error instanceof PostgresFailure && error.kind.isTimeout && error.kind.isPassing;
}

/** The error of calls that are not sent again because others timed out. */
function noAnswer(): PostgresFailure {
  return new PostgresFailure("the server does not answer", { isTimeout: true });
}
