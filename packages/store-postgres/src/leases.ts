import type { LeaseRenewal, Store } from "@tollgate/core/store";
import { createRepositories, leaseStatements, type SqlParameters } from "@tollgate/store-sql";
import type { Database } from "./database/database.ts";
import { arrayOf, databaseNow, postgresDialect } from "./database/postgres-dialect.ts";
import { readLater, scriptsOn } from "./database/scripts.ts";

/** Leases, and the Steps that open meanwhile. */
interface Leases extends Pick<Store, "renewLease" | "lapsedSteps"> {
  /** Opens a Step. The next renewal of its process waits for it. */
  whileOpening<Result>(open: () => Promise<Result>): Promise<Result>;
}

/** The time by the lease's clock. */
const now = `coalesce(CAST(:at AS BIGINT), ${databaseNow})`;

/**
 * Renews a lease and records the progress of its Steps in one statement. Steps that are being settled wait for it, so it
 * must not take a round trip for each. It locks them in the order in which commits do.
 */
const renew = `WITH p AS (${leaseStatements.renew
  .replace(":renewal", "CAST(:renewal AS BIGINT)")
  .replace(":lapses_at", `CAST(:lasts AS BIGINT) + ${now}`)} RETURNING id, renewal)
  UPDATE open_steps AS o SET renewal = p.renewal, output_tokens = g.output_tokens
  FROM p, unnest(CAST(:organizations AS TEXT[]), CAST(:ids AS TEXT[]), CAST(:tokens AS BIGINT[]))
    AS g (organization_id, step_id, output_tokens)
  WHERE o.process_id = p.id AND o.step_id = g.step_id AND o.organization_id = g.organization_id`;

const forget = leaseStatements.forget.replace(":at", now);

/** How long a renewal waits for Steps that open, in milliseconds. A lease lasts longer. */
const maxOpening = 5_000;

export function createLeases(database: Database): Leases {
  let opening = createOpening();
  const byIndex = createRepositories(
    {
      ...scriptsOn(database),
      read: (script) => database.byIndex((connection) => readLater(connection, script())),
    },
    postgresDialect,
  );
  return {
    async whileOpening(open) {
      const { begin, end } = opening;
      begin();
      try {
        return await open();
      } finally {
        end();
      }
    },
    async renewLease(lease) {
      // A named Step whose row is written after the renewal would keep the number of the one before, and look given up.
      const begun = opening;
      opening = createOpening();
      await begun.ended(maxOpening);
      await database.byIndex(async (connection) => {
        const parameters = renewalParameters(lease);
        await connection.run(renew, parameters);
        // A new process removes the leases of earlier ones.
        if (lease.renewal === 1) await connection.run(forget, parameters);
      });
    },
    lapsedSteps: byIndex.lapsedSteps,
  };
}

/** Counts the Steps that open between two renewals. */
function createOpening() {
  let count = 0;
  let whenNone = (): void => {};
  return {
    begin() {
      count++;
    },
    end() {
      if (--count === 0) whenNone();
    },
    /** Resolves once none opens, or after `longest` milliseconds. Call it after the last one began. */
    ended: (longest: number): Promise<void> =>
      new Promise((resolve) => {
        if (count === 0) return resolve();
        const timer = setTimeout(resolve, longest);
        whenNone = () => {
          clearTimeout(timer);
          resolve();
        };
      }),
  };
}

function renewalParameters({
  processId,
  renewal,
  at,
  until,
  clock,
  steps,
}: LeaseRenewal): SqlParameters {
  const sorted = steps.toSorted((a, b) => (a.stepId < b.stepId ? -1 : 1));
  return {
    process_id: processId,
    renewal,
    at: clock === "gateway" ? at : null,
    lasts: until - at,
    organizations: arrayOf(sorted.map(({ organizationId }) => organizationId)),
    ids: arrayOf(sorted.map(({ stepId }) => stepId)),
    tokens: `{${sorted.map(({ outputTokens }) => outputTokens ?? "NULL").join(",")}}`,
  };
}
