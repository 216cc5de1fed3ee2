import { describe, expect, it } from "vitest";
import { countRequests, type RequestCounts } from "../src/counts.ts";

/** The current figures of each store, rounded up a little; null if a store has no stable figure. */
type Ceiling = Readonly<Record<Store, number | null>> & {
  readonly figure: string;
  readonly of: keyof RequestCounts;
  /** The value to reach. */
  readonly goal: number;
};

type Store = (typeof stores)[number];

const stores = ["memory", "sqlite", "postgres"] as const;

/**
 * Requests of 1 KB through `@tollgate/node`, with keys, policy, prices, two hard budgets, transcripts and evidence. A
 * change that exceeds a ceiling fails. A change that improves a figure lowers its ceiling here.
 */
const ceilings: readonly Ceiling[] = [
  {
    figure: "SQL statements per Step, alone",
    of: "statementsAlone",
    memory: null,
    sqlite: 17,
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
    sqlite: 4.5,
    postgres: null,
    goal: 4,
  },
  {
    figure: "promises per request",
    of: "promises",
    memory: 20,
    sqlite: 20,
    postgres: 20,
    goal: 20,
  },
  {
    figure: "promises per streamed event",
    of: "promisesPerEvent",
    memory: 0.1,
    sqlite: 0.1,
    postgres: 0.1,
    goal: 0.2,
  },
  {
    figure: "bytes allocated per request",
    of: "allocatedBytes",
    memory: 110_000,
    sqlite: 123_500,
    postgres: null,
    goal: 40_000,
  },
  {
    figure: "bytes promoted per request",
    of: "promotedBytes",
    memory: 7_700,
    sqlite: 1_250,
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
    sqlite: 97_000,
    postgres: null,
    goal: 60_000,
  },
];

describe.each(stores)("on the %s store", (store) => {
  it("stays below every ceiling", { timeout: 120_000 }, async () => {
    const counts = await countRequests(store);
    const above = ceilings
      .filter(({ of, [store]: max }) => max !== null && !(counts[of] <= max))
      .map(
        ({ figure, of, [store]: max, goal }) =>
          `${figure}: ${counts[of]}, at most ${max} (goal ${goal})`,
      );
    expect(above).toEqual([]);
    // A broken count of 0 would pass every ceiling.
    expect(counts.promises).toBeGreaterThan(0);
    if (store !== "memory") expect(counts.statementsAlone).toBeGreaterThan(0);
  });
});
