import { nextTick } from "node:process";
import { yieldToEventLoop } from "@tollgate/core/store";
import { isBusy, maxPause, storeFailure } from "./failure.ts";
import type { Transaction } from "./transaction.ts";

/** A write within a transaction. Runs again if the transaction is rolled back. */
export type WriteOperation<Result> = (transaction: Transaction) => Result;

/** Commits writes together with others that arrive at the same time. */
interface GroupCommit {
  /** Resolves when the write is on disk. */
  write<Result>(operation: WriteOperation<Result>): Promise<Result>;
  /** Resolves when no write is queued or running. */
  drained(): Promise<void>;
  /** How many writes are queued. */
  waiting(): number;
}

/** The work of one transaction. */
type Work = (transaction: Transaction) => void;

/** Runs work in one transaction. It is committed when the call returns or its promise resolves. */
interface Commit {
  /** @throws SQLite's error, immediately if another connection holds the lock */
  immediately(work: Work): void;
  /** Waits while another connection holds the lock. */
  whenUnlocked(work: Work): Promise<void>;
  /** Whether another connection writes, too. */
  isShared(): boolean;
}

interface QueuedWrite {
  run(transaction: Transaction): void;
  resolve(): void;
  reject(error: unknown): void;
}

/** Commits writes in one transaction once no other connection holds the lock. Removes those that it doesn't take. */
type CommitLater = (members: QueuedWrite[]) => Promise<void>;

const maxGroupSize = 50;
/** A group that has written or overwritten this many bytes takes no more writes: the event loop waits for the disk. */
const maxGroupBytes = 4_194_304;
const maxQueueLength = 10_000;

export function createGroupCommit(commit: Commit): GroupCommit {
  const queue: QueuedWrite[] = [];
  let isFlushing = false;
  /** When the last group ended. Monotonic. */
  let endedAt = Number.NEGATIVE_INFINITY;
  let drained: (() => void)[] = [];

  /** Runs writes. Those that the group doesn't take go back to the queue. */
  function runGroup(members: QueuedWrite[]): Work {
    return (transaction) => {
      for (const [place, member] of members.entries()) {
        if (transaction.contentBytes >= maxGroupBytes) {
          queue.unshift(...members.splice(place));
          return;
        }
        member.run(transaction);
      }
    };
  }
  const whenUnlocked: CommitLater = (members) => commit.whenUnlocked(runGroup(members));

  /** Requests that arrived together write before the next tick, so they share a group. */
  function flushSoon(): void {
    isFlushing = true;
    flushBy(nextTick);
  }
  /**
   * If another process writes too, leaves the lock free for its longest pause after each group. Otherwise, this process would
   * take the lock again before the other one tries.
   */
  function flushBy(schedule: (run: () => void) => void): void {
    const rest = commit.isShared() ? endedAt + maxPause - performance.now() : 0;
    if (rest > 0) setTimeout(flush, rest);
    else schedule(flush);
  }
  function flush(): void {
    const members = queue.splice(0, maxGroupSize);
    try {
      commit.immediately(runGroup(members));
    } catch (error) {
      void recover(members, error).then(flushNext);
      return;
    }
    for (const member of members) member.resolve();
    flushNext();
  }
  function flushNext(): void {
    endedAt = performance.now();
    if (queue.length > 0) {
      // Between groups, the event loop handles everything else.
      flushBy(setImmediate);
      return;
    }
    isFlushing = false;
    for (const resolve of drained) resolve();
    drained = [];
  }
  /** Waits for the lock if that caused the error. Otherwise finds the write that failed. */
  async function recover(members: QueuedWrite[], error: unknown): Promise<void> {
    const locked = isBusy(error)
      ? await commitGroup(whenUnlocked, members)
      : await commitEach(whenUnlocked, members, error);
    // Writes queued meanwhile waited for the same lock. Waiting again for each could go on forever.
    if (locked) for (const member of queue.splice(0)) member.reject(locked);
  }
  return {
    write(operation) {
      if (queue.length >= maxQueueLength)
        return Promise.reject(
          storeFailure(`${maxQueueLength} changes are already waiting to be written`),
        );
      return new Promise((resolve, reject) => {
        queue.push(createQueuedWrite(operation, resolve, reject));
        if (!isFlushing) flushSoon();
      });
    },
    waiting: () => queue.length,
    drained: () =>
      new Promise((resolve) => {
        if (isFlushing) drained.push(resolve);
        else resolve();
      }),
  };
}

function createQueuedWrite<Result>(
  operation: WriteOperation<Result>,
  resolve: (result: Result) => void,
  reject: (error: unknown) => void,
): QueuedWrite {
  let settle = (): void => {};
  return {
    run(transaction) {
      const result = operation(transaction);
      settle = () => resolve(result);
    },
    resolve: () => settle(),
    reject,
  };
}

/**
 * Commits all writes in one transaction. If one of them fails, commits each in its own transaction, so the others
 * succeed. Returns the error if the database stayed locked, which fails them all.
 */
async function commitGroup(commit: CommitLater, members: QueuedWrite[]): Promise<Error | null> {
  try {
    await commit(members);
  } catch (error) {
    if (!isLocked(error)) return commitEach(commit, members, error);
    for (const member of members) member.reject(error);
    return error;
  }
  for (const member of members) member.resolve();
  return null;
}

async function commitEach(
  commit: CommitLater,
  members: readonly QueuedWrite[],
  error: unknown,
): Promise<Error | null> {
  if (members.length === 1) {
    members[0]?.reject(error);
    return null;
  }
  for (const [place, member] of members.entries()) {
    // Each commit waits for the disk, and the event loop with it.
    await yieldToEventLoop();
    const locked = await commitGroup(commit, [member]);
    if (!locked) continue;
    for (const other of members.slice(place + 1)) other.reject(locked);
    return locked;
  }
  return null;
}

function isLocked(error: unknown): error is Error {
  return error instanceof Error && isBusy(error.cause);
}
