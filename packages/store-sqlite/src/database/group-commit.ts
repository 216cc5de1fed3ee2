import { isBusy, storeFailure } from "./failure.ts";
import type { Transaction } from "./transaction.ts";

/** One change, decided and written within the transaction it is given; runs again if that is rolled back. */
export type Operation<Result> = (transaction: Transaction) => Result;

/** Operations that are committed together with those that arrive at the same time. */
export interface GroupCommit {
  /** Resolves when what the operation did is on disk. */
  write<Result>(operation: Operation<Result>): Promise<Result>;
  /** Resolves when nothing is queued or under way. */
  drained(): Promise<void>;
}

/** Runs work in one transaction, committed when the promise resolves. */
type Commit = <Result>(work: (transaction: Transaction) => Result) => Promise<Result>;

interface Member {
  run(transaction: Transaction): void;
  resolve(): void;
  reject(error: unknown): void;
}

const groupSize = 50;
const longestQueue = 10_000;

export function createGroupCommit(commit: Commit): GroupCommit {
  const queue: Member[] = [];
  let flushing: Promise<void> | null = null;

  const flush = async (): Promise<void> => {
    // What arrives in the same turn of the event loop joins the group; nothing waits on a timer.
    await new Promise((resolve) => setImmediate(resolve));
    while (queue.length > 0) {
      const locked = await commitGroup(commit, queue.splice(0, groupSize));
      // What queued up meanwhile has waited for the same lock; a wait of its own for each would have no end.
      if (locked) for (const member of queue.splice(0)) member.reject(locked);
    }
    flushing = null;
  };
  return {
    write(operation) {
      if (queue.length >= longestQueue)
        return Promise.reject(storeFailure(`${longestQueue} changes wait to be written already`));
      return new Promise((resolve, reject) => {
        queue.push(createMember(operation, resolve, reject));
        flushing ??= flush();
      });
    },
    async drained() {
      while (flushing) await flushing;
    },
  };
}

function createMember<Result>(
  operation: Operation<Result>,
  resolve: (result: Result) => void,
  reject: (error: unknown) => void,
): Member {
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
 * All members in one transaction; if one of them fails, each in its own, so that no other suffers from it. Returns the
 * failure when the database stayed locked, which fails them all.
 */
async function commitGroup(commit: Commit, members: readonly Member[]): Promise<Error | null> {
  try {
    await commit((transaction) => {
      for (const member of members) member.run(transaction);
    });
  } catch (error) {
    if (members.length > 1 && !isLocked(error)) return commitEach(commit, members);
    for (const member of members) member.reject(error);
    return isLocked(error) ? error : null;
  }
  for (const member of members) member.resolve();
  return null;
}

async function commitEach(commit: Commit, members: readonly Member[]): Promise<Error | null> {
  for (const [place, member] of members.entries()) {
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
