import { describe, expect, it } from "vitest";
import { countRequests, type RequestCounts } from "../src/counts.ts";

/** Today's figures of one store, rounded up a little; null where a store has none, or none that is steady. */
type Ceiling = Readonly<Record<Store, number | null>> & {
  readonly figure: string;
  readonly of: keyof RequestCounts;
  /** Where it is to come down to. */
  readonly goal: number;
};

type Store = (typeof stores)[number];

const stores = ["memory", "sqlite", "postgres"] as const;

/**
 * Requests of 1 KB through `@tollgate/node`, with keys, policy, prices, two hard budgets, transcripts and evidence. A
 * change that makes a figure worse fails; one that makes it better lowers its ceiling here.
 */
const ceilings: readonly Ceiling[] = [
  {
    figure: "SQL statements per Step, alone",
    of: "statementsAlone",
    memory: null,
    sqlite: 18,
    postgres: null,
    goal: 10,
  },
  {
    figure: "SQL statements per Step on PostgreSQL, alone",
    of: "statementsAlone",
    memory: null,
    sqlite: null,
    postgres: 2.2,
    goal: 1,
  },
  {
    figure: "SQL statements per Step, in groups of 32",
    of: "statementsInGroups",
    memory: null,
    sqlite: 6.5,
    postgres: null,
    goal: 4,
  },
  {
    figure: "promises per request",
    of: "promises",
    memory: 20,
    sqlite: 20,
    postgres: 90,
    goal: 20,
  },
  {
    figure: "promises per streamed event",
    of: "promisesPerEvent",
    memory: 0.1,
    sqlite: 0.1,
    postgres: 1,
    goal: 0.2,
  },
  {
    figure: "bytes allocated per request",
    of: "allocatedBytes",
    memory: 125_000,
    sqlite: 138_000,
    postgres: null,
    goal: 40_000,
  },
  {
    figure: "bytes promoted per request",
    of: "promotedBytes",
    memory: 9_000,
    sqlite: 1_500,
    postgres: null,
    goal: 300,
  },
  {
    figure: "sockets opened by warm requests",
    of: "sockets",
    memory: 0,
    sqlite: 0,
    postgres: null,
    goal: 0,
  },
  {
    figure: "bytes written per Step, alone",
    of: "writtenBytes",
    memory: null,
    sqlite: 185_000,
    postgres: null,
    goal: 60_000,
  },
];

describe.each(stores)("on the %s store", (store) => {
  it("takes no more of anything than the ceilings allow", { timeout: 120_000 }, async () => {
    const counts = await countRequests(store);
    const above = ceilings
      .filter(({ of, [store]: most }) => most !== null && !(counts[of] <= most))
      .map(
        ({ figure, of, [store]: most, goal }) =>
          `${figure}: ${counts[of]}, at most ${most} (goal ${goal})`,
      );
    expect(above).toEqual([]);
    // A count that counts nothing would pass every ceiling.
    expect(counts.promises).toBeGreaterThan(0);
    if (store !== "memory") expect(counts.statementsAlone).toBeGreaterThan(0);
  });
});
