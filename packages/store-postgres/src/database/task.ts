/** Learns how a task ends. Only the first end counts. */
export interface Receiver<Result> {
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Work that tells a receiver how it ends. Tasks carry out the statements of requests, because async functions would create
 * several promises for each one that they await.
 */
export type Task<Result> = (receiver: Receiver<Result>) => void;

/** Runs a task for a caller that awaits it. */
export function promised<Result>(task: Task<Result>): Promise<Result> {
  return new Promise((resolve, reject) => task({ resolve, reject }));
}

/** The task that awaits async work. */
export function taskOf<Result>(work: () => Promise<Result>): Task<Result> {
  return ({ resolve, reject }) => void work().then(resolve, reject);
}

/** A task with another form of its result. */
export function mapped<From, To>(task: Task<From>, read: (result: From) => To): Task<To> {
  return ({ resolve, reject }) => task({ resolve: (result) => resolve(read(result)), reject });
}

/** Runs a task, and ends it with what it throws. An error thrown into an event of the client would end the host process. */
export function attempt<Result>(task: Task<Result>, receiver: Receiver<Result>): void {
  try {
    task(receiver);
  } catch (error) {
    receiver.reject(error);
  }
}

/** Runs a task, and calls `end` once when it ends, before the receiver learns of it. */
export function ending<Result>(
  task: Task<Result>,
  end: () => void,
  receiver: Receiver<Result>,
): void {
  let isOver = false;
  const once = (tell: () => void): void => {
    if (isOver) return;
    isOver = true;
    attempt(() => {
      end();
      tell();
    }, receiver);
  };
  attempt(task, {
    resolve: (result) => once(() => receiver.resolve(result)),
    reject: (error) => once(() => receiver.reject(error)),
  });
}
