import type { RowName } from "@tollgate/store-engine";
import type { Connection } from "../database/connection.ts";
import { mayBeDone, PostgresFailure } from "../database/failure.ts";
import { maxRetries, type PauseAfter } from "../database/retry.ts";
import { ending, type Task } from "../database/task.ts";
import type { Draft, Locks } from "./draft.ts";
import { afterTimeout, isTimeout, type Lane, type Queued } from "./lane.ts";
import { isSameRow } from "./lock-rows.ts";

/** The end of a Step that a decision is about. */
export type StepEnd = "opening" | "settling";

/** A decision that waits to be written in a batch. */
export interface PendingDecision<One extends PreparedDecision<One>> {
  readonly end: StepEnd;
  /** Decides on the known rows, as earlier drafts leave them. Null if that needs rows that are not known. */
  draft(before: readonly One[]): One | null;
  /** Runs it in its own transaction. `failure` is the error of an earlier run, or null. */
  runAlone(failure: unknown): void;
  reject(error: unknown): void;
}

/** A decision that is ready to be written. */
export interface PreparedDecision<One extends PreparedDecision<One>> extends Draft {
  readonly waiting: PendingDecision<One>;
}

type Locking = Pick<Draft, "locks">;

/** The drafts that are being written. A draft that locks one of their Sessions waits, and is then decided on the new rows. */
export class RunningDrafts {
  readonly #batches: (readonly Locking[])[] = [];
  readonly #listeners: (() => void)[] = [];

  /** Whether a running draft locks one of these Sessions. */
  locks(sessions: readonly RowName[]): boolean {
    if (sessions.length === 0) return false;
    return this.#batches.some((drafts) =>
      drafts.some(({ locks }) => locks.sessions.some((one) => isAmong(one, sessions))),
    );
  }

  add(drafts: readonly Locking[]): void {
    this.#batches.push(drafts);
  }

  remove(drafts: readonly Locking[]): void {
    this.#batches.splice(this.#batches.indexOf(drafts), 1);
    for (const listener of this.#listeners) listener();
  }

  /** Calls `listener` whenever running drafts end. */
  listen(listener: () => void): void {
    this.#listeners.push(listener);
  }
}

/** The locks of a decision that runs alone. Batches wait for them. */
export class HeldLocks {
  readonly #underWay: RunningDrafts;
  #held: readonly Locking[] = [];

  constructor(underWay: RunningDrafts) {
    this.#underWay = underWay;
  }

  take(locks: Locks): void {
    this.release();
    this.#held = [{ locks }];
    this.#underWay.add(this.#held);
  }

  release(): void {
    if (this.#held.length > 0) this.#underWay.remove(this.#held);
    this.#held = [];
  }
}

function isAmong(row: RowName, rows: readonly RowName[]): boolean {
  return rows.some((other) => isSameRow(row, other));
}

/** A queued decision. */
interface QueuedDecision<One extends PreparedDecision<One>> extends Queued {
  readonly waiting: PendingDecision<One>;
  /** The Sessions that it waited for when it was last tried. */
  heldBy: readonly RowName[];
  /** The largest batch that it may share. */
  readonly most: number;
  /** How often a statement got no connection while it waited. */
  refusals: number;
}

/** Changes in one statement. After a large batch failed, its decisions share small ones, so most don't run alone. */
const maxBatchSize = 64;
const maxSmallBatchSize = 8;
/** Bytes and characters in one statement. A longer change goes alone. */
const maxBatchLength = 1_048_576;
/**
 * One statement runs at once, or two if `minWaiting` changes wait, because a larger batch costs less for each change. A
 * statement that has run for `longRun` milliseconds may be waiting for a lock, so it no longer counts. Each holds a
 * connection that others need, so at most `maxRunning` run.
 */
const minWaiting = maxBatchSize;
const longRun = 50;
const maxRunning = 4;
/** Decisions that wait for each end of their Steps: however many Steps are to be opened, open ones can be settled. */
const maxQueued = 256;

/** The decisions that are written in batches. */
export interface Batches<One extends PreparedDecision<One>> {
  add(waiting: PendingDecision<One>): void;
  /** How many decisions wait for a statement. If the next statement waits for a connection, one of them doesn't count. */
  waiting(): number;
}

/** Sends batches to the database. */
export interface BatchTransport<One extends PreparedDecision<One>> {
  readonly withConnection: (use: (connection: Connection) => Task<void>) => Task<void>;
  readonly pauseAfter: PauseAfter;
  /** Writes the drafts in one statement and answers each. */
  readonly send: (connection: Connection, drafts: readonly One[]) => Task<void>;
  readonly underWay: RunningDrafts;
  readonly lane: Lane;
}

/**
 * Batches decisions: a call goes at once if no statement runs, and calls that arrive meanwhile share the next one. After a
 * batch fails, its decisions run in smaller ones and finally alone, so none fails because of another.
 */
export function createBatches<One extends PreparedDecision<One>>({
  withConnection,
  pauseAfter,
  send,
  underWay,
  lane,
}: BatchTransport<One>): Batches<One> {
  let queue: QueuedDecision<One>[] = [];
  let running = 0;
  /** How many of them have run for `longRun`. */
  let long = 0;
  let latestRun = 0;
  let isBorrowing = false;
  /** Whether every queued decision waits for running drafts. */
  let isHeldUp = false;

  const take = (): readonly One[] => {
    isBorrowing = false;
    const { drafts, left } = takeFrom(queue, underWay, lane);
    queue = left;
    isHeldUp = drafts.length === 0 && queue.length > 0;
    if (drafts.length > 0) underWay.add(drafts);
    dispatch();
    return drafts;
  };
  const counted =
    (sending: Task<void>): Task<void> =>
    (receiver) => {
      let isLong = false;
      const timer = setTimeout(() => {
        isLong = true;
        long++;
        dispatch();
      }, longRun);
      const end = (): void => {
        clearTimeout(timer);
        if (isLong) long--;
      };
      ending(sending, end, receiver);
    };
  const runBatch = (): void => {
    const run = ++latestRun;
    const taken: { drafts: readonly One[] | null } = { drafts: null };
    isBorrowing = true;
    const batch = withConnection((connection) => {
      const drafts = take();
      taken.drafts = drafts;
      return drafts.length > 0 ? counted(send(connection, drafts)) : ({ resolve }) => resolve();
    });
    const end = (): void => {
      running--;
      if (taken.drafts && taken.drafts.length > 0) underWay.remove(taken.drafts);
      else dispatch();
    };
    // Callers that have their answer continue first, so their next decisions share the next statement.
    batch({
      resolve: () => queueMicrotask(end),
      reject(error) {
        if (isTimeout(error)) queue = afterTimeout(queue, { run, latestRun });
        if (taken.drafts) recover(error, taken.drafts);
        else if (isTimeout(error)) isBorrowing = false;
        else return waitForConnection(error, end);
        queueMicrotask(end);
      },
    });
  };
  /** Runs the decisions of a failed batch in another way. */
  const recover = (error: unknown, drafts: readonly One[]): void => {
    // Changes that may be written can't share a statement again.
    if (drafts.length > maxSmallBatchSize && !mayBeDone(error))
      queue = [...drafts.map(({ waiting }) => queued(waiting, maxSmallBatchSize)), ...queue];
    else for (const { waiting } of drafts) waiting.runAlone(failureOf(error, drafts));
  };
  /** Keeps the queue together for the next try: if all ran alone at once, too many would wait for a connection. */
  const waitForConnection = (error: unknown, end: () => void): void => {
    queue = afterRefusal(queue, error);
    const retries = Math.max(0, ...queue.map(({ refusals }) => refusals - 1));
    void pauseAfter(retries).then(() => {
      isBorrowing = false;
      end();
    });
  };
  const dispatch = (): void => {
    if (queue.length === 0 || isHeldUp || isBorrowing) return;
    const most = long + (queue.length >= minWaiting ? 2 : 1);
    if (running >= Math.min(most, maxRunning)) return;
    running++;
    runBatch();
  };
  const goOn = (): void => {
    isHeldUp = false;
    dispatch();
  };
  underWay.listen(goOn);
  lane.listen((failure) => {
    // Decisions may wait here for the lane. It only counts as their first timeout, because no statement began after it.
    if (isTimeout(failure)) queue = afterTimeout(queue, { run: 0, latestRun });
    goOn();
  });
  return {
    add(waiting) {
      if (queue.length >= maxQueued && countOf(queue, waiting.end) >= maxQueued)
        return waiting.reject(
          new PostgresFailure(`${maxQueued} calls are already waiting for a connection`),
        );
      queue.push(queued(waiting, maxBatchSize));
      goOn();
    },
    waiting: () => Math.max(0, queue.length - (isBorrowing ? 1 : 0)),
  };
}

function countOf(
  queue: readonly { readonly waiting: { readonly end: StepEnd } }[],
  end: StepEnd,
): number {
  return queue.filter(({ waiting }) => waiting.end === end).length;
}

function queued<One extends PreparedDecision<One>>(
  waiting: PendingDecision<One>,
  most: number,
): QueuedDecision<One> {
  return { waiting, heldBy: [], most, refusals: 0, timedOutAfter: null, reject: waiting.reject };
}

/** Returns what stays in a queue after a statement got no connection. An entry gets as many tries as a separate call. */
function afterRefusal<One extends PreparedDecision<One>>(
  queue: readonly QueuedDecision<One>[],
  error: unknown,
): QueuedDecision<One>[] {
  const mayPass = error instanceof PostgresFailure && error.kind.isPassing;
  return queue.filter((queued) => {
    const stays = mayPass && queued.refusals++ < maxRetries;
    if (!stays) queued.reject(error);
    return stays;
  });
}

/** The next batch. No draft of it locks a Session that a running draft locks. */
function takeFrom<One extends PreparedDecision<One>>(
  queue: readonly QueuedDecision<One>[],
  underWay: RunningDrafts,
  lane: Lane,
) {
  const drafts: One[] = [];
  const left: QueuedDecision<One>[] = [];
  let length = 0;
  let most = maxBatchSize;
  for (const [at, one] of queue.entries()) {
    if (underWay.locks(one.heldBy)) {
      left.push(one);
      continue;
    }
    if (drafts.length >= Math.min(most, one.most))
      return { drafts, left: [...left, ...queue.slice(at)] };
    const { waiting } = one;
    const draft = waiting.draft(drafts);
    if (!draft) {
      // A decision in the lane may learn the rows that this one lacks.
      one.heldBy = [];
      if (lane.isFull) left.push(one);
      else waiting.runAlone(null);
    } else if (
      underWay.locks(draft.locks.sessions) ||
      drafts.some(({ locks }) => locks.steps.some((step) => isAmong(step, draft.locks.steps)))
    ) {
      one.heldBy = draft.locks.sessions;
      left.push(one);
    } else {
      length += draft.length;
      if (drafts.length > 0 && length > maxBatchLength)
        return { drafts, left: [...left, ...queue.slice(at)] };
      drafts.push(draft);
      most = Math.min(most, one.most);
    }
  }
  return { drafts, left };
}

/**
 * The failure for each draft of a batch: null if another draft may have caused it. If each change may be written, the
 * connection failed, so no draft caused it.
 */
function failureOf(error: unknown, drafts: readonly Draft[]): unknown {
  return mayBeDone(error) || drafts.length === 1 ? error : null;
}
