import type { PostgresClient, PostgresPool } from "./client.ts";
import { connectFailure, PostgresFailure } from "./failure.ts";

/** How many may wait for a connection, and how long each. Milliseconds. */
const longestQueue = 256;
const longestWait = 2_000;

/** A connection in use. */
export interface Loan {
  readonly client: PostgresClient;
  /** Notes that the connection is of no use any more: it is closed when it is given back. */
  lose(): void;
  giveBack(): void;
}

/** Takes connections from a pool, with a bound on how many wait and how long, whatever the pool's own are. */
export function createLender(pool: PostgresPool): () => Promise<Loan> {
  let waiting = 0;
  return async () => {
    if (waiting >= longestQueue)
      throw new PostgresFailure(`${longestQueue} calls wait for a connection already`);
    waiting++;
    try {
      return await borrowed(pool);
    } finally {
      waiting--;
    }
  };
}

function borrowed(pool: PostgresPool): Promise<Loan> {
  return new Promise((resolve, reject) => {
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      reject(
        new PostgresFailure(`no connection became free or opened within ${longestWait} ms`, {
          isTimeout: true,
        }),
      );
    }, longestWait);
    pool.connect((error, client) => {
      clearTimeout(timer);
      if (!client) return reject(connectFailure(error));
      // At once: one that ends as it begins says so before any promise could resolve.
      const loan = lend(client);
      // Nobody waits any more: it goes to the next.
      if (isLate) loan.giveBack();
      else resolve(loan);
    });
  });
}

/** A connection that breaks while nothing runs on it says so by an event, which would end the host process unheard. */
function lend(client: PostgresClient): Loan {
  let isLost = false;
  const lose = (): void => {
    isLost = true;
  };
  client.on("error", lose);
  return {
    client,
    lose,
    giveBack() {
      // One that is lost may still have something to say while it closes.
      if (!isLost) client.off("error", lose);
      client.release(isLost);
    },
  };
}
