import type { LeaseRenewal, Store } from "@tollgate/core/store";
import { createRepositories, type SqlParameters } from "@tollgate/store-sql";
import type { Database } from "./database/database.ts";
import { databaseNow, postgresDialect } from "./database/postgres-dialect.ts";
import { playTransaction, readLater, scriptsOn } from "./database/scripts.ts";
import { ending, type Task } from "./database/task.ts";
import { createTransaction } from "./database/transaction.ts";

/** The lease operations, coordinated with the Steps that are being opened. */
interface Leases extends Pick<Store, "renewLease" | "lapsedSteps"> {
  /** Opens a Step. Renewals that begin meanwhile wait for it, up to `maxOpening`. */
  whileOpening<Result>(open: Task<Result>): Task<Result>;
}

/**
 * How long a renewal waits for Steps that are being opened, in milliseconds. Renewals are 5 s apart, and a process whose
 * last one is more than 10 s old skips a round of recovering other processes' Steps.
 */
const maxOpening = 2_500;

/**
 * Extends a lease, but keeps its renewal number. If it lapsed, and another process has removed it, it begins again with a
 * number that no Step is older than.
 */
const extend = `INSERT INTO processes (id, renewal, lapses_at)
  VALUES (:process_id, 0, CAST(:lasts AS BIGINT) + coalesce(CAST(:at AS BIGINT), ${databaseNow}))
  ON CONFLICT (id) DO UPDATE SET lapses_at = excluded.lapses_at`;

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
    whileOpening: (open) => (receiver) => {
      const since = openings.begin();
      ending(open, () => openings.end(since), receiver);
    },
    async renewLease(lease) {
      // A row that is written after the renewal that names its Step has the previous renewal's number, so the Step looks
      // given up. If a Step takes too long to open, this only extends the lease: its number stays that of the rows.
      const isNew = lease.renewal === 1;
      if (isNew || (await openings.ended(maxOpening))) await renewLease(lease);
      else await byIndex((connection) => connection.run(extend, lastsOf(lease)));
    },
    lapsedSteps,
  };
}

/** The Steps that began to open between the same two renewals. */
interface OpeningSteps {
  count: number;
}

/** Counts the Steps that are being opened. */
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
    /** Resolves to true once all Steps that have begun to open are done, or to false after `longest` milliseconds. */
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
