import type { LeaseRenewal, Store } from "@tollgate/core/store";
import { createRepositories, type SqlParameters } from "@tollgate/store-sql";
import type { Database } from "./database/database.ts";
import { databaseNow, postgresDialect } from "./database/postgres-dialect.ts";
import { playTransaction, readLater, scriptsOn } from "./database/scripts.ts";
import { createTransaction } from "./database/transaction.ts";

/** Leases, and the Steps that open meanwhile. */
interface Leases extends Pick<Store, "renewLease" | "lapsedSteps"> {
  /** Opens a Step. The renewals that begin meanwhile wait for it. */
  whileOpening<Result>(open: () => Promise<Result>): Promise<Result>;
}

/**
 * How long a renewal waits for Steps that open, in milliseconds. Renewals are 5 s apart. A process whose last one is
 * more than 10 s old skips a round of recovering the Steps of others.
 */
const maxOpening = 2_500;

/** Lets a lease last longer. */
const extend = `UPDATE processes
  SET lapses_at = CAST(:lasts AS BIGINT) + coalesce(CAST(:at AS BIGINT), ${databaseNow})
  WHERE id = :process_id`;

function lastsOf({ processId, at, until, clock }: LeaseRenewal): SqlParameters {
  return { process_id: processId, lasts: until - at, at: clock === "gateway" ? at : null };
}

export function createLeases(database: Database): Leases {
  const openings = createOpenings();
  const { byIndex, schema } = database;
  const { renewLease, lapsedSteps } = createRepositories(
    {
      ...scriptsOn(database),
      read: (script) => byIndex((connection) => readLater(connection, script())),
      write: (script) =>
        byIndex((connection) => playTransaction(createTransaction(connection, schema), script())),
    },
    postgresDialect,
  );
  return {
    async whileOpening(open) {
      const since = openings.begin();
      try {
        return await open();
      } finally {
        openings.end(since);
      }
    },
    async renewLease(lease) {
      // If a renewal names a Step whose row is written later, the row has the number of the renewal before, and the
      // Step looks given up. If a Step takes too long, the lease only lasts longer, under the number of its rows.
      const isNew = lease.renewal === 1;
      if (isNew || (await openings.ended(maxOpening))) await renewLease(lease);
      else await byIndex((connection) => connection.run(extend, lastsOf(lease)));
    },
    lapsedSteps,
  };
}

/** Steps that open, by the renewal before which they began. */
interface OpeningSteps {
  count: number;
}

/** Counts the Steps that open. */
function createOpenings() {
  let latest: OpeningSteps = { count: 0 };
  let earlier: readonly OpeningSteps[] = [];
  const waiting = new Set<() => void>();
  return {
    begin(): OpeningSteps {
      latest.count++;
      return latest;
    },
    end(opening: OpeningSteps): void {
      if (--opening.count === 0) for (const check of [...waiting]) check();
    },
    /** Resolves once all that have begun have ended: true, or false if that takes more than `longest` milliseconds. */
    ended(longest: number): Promise<boolean> {
      const begun = [...earlier, latest].filter(({ count }) => count > 0);
      earlier = begun;
      latest = { count: 0 };
      return new Promise((resolve) => {
        const finish = (hasEnded: boolean): void => {
          clearTimeout(timer);
          waiting.delete(check);
          resolve(hasEnded);
        };
        const check = (): void => {
          if (begun.every(({ count }) => count === 0)) finish(true);
        };
        const timer = setTimeout(finish, longest, false);
        waiting.add(check);
        check();
      });
    },
  };
}
