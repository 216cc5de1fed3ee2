import type { PostgresClient, PostgresPool } from "./client.ts";
import { connectFailure, PostgresFailure } from "./failure.ts";

/** How many may wait for a connection, and how long each. Milliseconds. */
const maxWaiting = 256;
const acquireTimeout = 2_000;

/** A connection in use. */
export interface AcquiredClient {
  readonly client: PostgresClient;
  /** Notes that the connection is of no use any more: it is closed when it is given back. */
  discard(): void;
  release(): void;
}

/** Takes connections from a pool, with a bound on how many wait and how long, whatever the pool's own are. */
export function createAcquire(pool: PostgresPool): () => Promise<AcquiredClient> {
  let waiting = 0;
  return async () => {
    if (waiting >= maxWaiting)
      throw new PostgresFailure(`${maxWaiting} calls wait for a connection already`);
    waiting++;
    try {
      return await acquireFrom(pool);
    } finally {
      waiting--;
    }
  };
}

function acquireFrom(pool: PostgresPool): Promise<AcquiredClient> {
  return new Promise((resolve, reject) => {
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      reject(
        new PostgresFailure(`no connection became free or opened within ${acquireTimeout} ms`, {
          isTimeout: true,
        }),
      );
    }, acquireTimeout);
    pool.connect((error, client) => {
      clearTimeout(timer);
      if (!client) return reject(connectFailure(error));
      // At once: one that ends as it begins says so before any promise could resolve.
      const loan = acquired(client);
      // Nobody waits any more: it goes to the next.
      if (isLate) loan.release();
      else resolve(loan);
    });
  });
}

/** A connection that breaks while nothing runs on it says so by an event, which would end the host process unheard. */
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
      // One that is lost may still have something to say while it closes.
      if (!isLost) client.off("error", lose);
      client.release(isLost);
    },
  };
}
