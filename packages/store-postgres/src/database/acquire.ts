import type { PostgresClient, PostgresPool } from "./client.ts";
import { connectFailure, PostgresFailure } from "./failure.ts";
import { ending, type Receiver, type Task } from "./task.ts";

/** How many calls may wait for a connection, and for how many milliseconds. */
const maxWaiting = 256;
const acquireTimeout = 2_000;

/** A borrowed connection. */
export interface AcquiredClient {
  readonly client: PostgresClient;
  /** Marks the connection as broken: `release` closes it. */
  discard(): void;
  release(): void;
}

/** Takes connections from a pool, and limits how many calls wait and how long, whatever the pool's own limits. */
export function createAcquire(pool: PostgresPool) {
  let waiting = 0;
  const end = (): void => {
    waiting--;
  };
  const acquire: Task<AcquiredClient> = (receiver) => {
    if (waiting >= maxWaiting)
      return receiver.reject(
        new PostgresFailure(`${maxWaiting} calls are already waiting for a connection`),
      );
    waiting++;
    ending((taker) => acquireFrom(pool, taker), end, receiver);
  };
  return { acquire, waiting: () => waiting };
}

function acquireFrom(pool: PostgresPool, { resolve, reject }: Receiver<AcquiredClient>): void {
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    reject(
      new PostgresFailure(`no connection became free or opened within ${acquireTimeout} ms`, {
        isTimeout: true,
      }),
    );
  }, acquireTimeout);
  const take: Parameters<PostgresPool["connect"]>[0] = (error, client) => {
    clearTimeout(timer);
    if (!client) return reject(connectFailure(error));
    // Listens at once: a connection may report an error as it opens.
    const loan = acquired(client);
    // The caller gave up, so the next one gets it.
    if (isLate) loan.release();
    else resolve(loan);
  };
  try {
    pool.connect(take);
  } catch (error) {
    take(error instanceof Error ? error : undefined, undefined);
    // A client that comes after all goes back.
    isLate = true;
  }
}

/** An idle connection that breaks emits an error event, which would end the host process if nothing listened. */
function acquired(client: PostgresClient): AcquiredClient {
  let isLost = false;
  const lose = (): void => {
    isLost = true;
  };
  client.on("error", lose);
  return {
    client,
    discard: lose,
    release() {
      // A broken connection may emit more errors while it closes.
      if (!isLost) client.off("error", lose);
      client.release(isLost);
    },
  };
}
