import { describe, expect, it } from "vitest";
import { countRequests, type RequestCounts } from "../src/counts.ts";

interface Ceiling {
  readonly figure: string;
  readonly of: keyof RequestCounts;
  /** Today's figure, rounded up a little: a change that makes it worse fails; one that makes it better lowers it here. */
  readonly memory: number | null;
  readonly sqlite: number;
  /** Where it is to come down to. */
  readonly goal: number;
}

/** Requests of 1 KB through `@tollgate/node`, with keys, policy, prices, two hard budgets, transcripts and evidence. */
const ceilings: readonly Ceiling[] = [
  {
    figure: "SQL statements per Step, alone",
    of: "statementsAlone",
    memory: null,
    sqlite: 33,
    goal: 10,
  },
  {
    figure: "SQL statements per Step, in groups of 32",
    of: "statementsInGroups",
    memory: null,
    sqlite: 25,
    goal: 4,
  },
  { figure: "promises per request", of: "promises", memory: 163, sqlite: 177, goal: 20 },
  {
    figure: "promises per streamed event",
    of: "promisesPerEvent",
    memory: 37,
    sqlite: 37,
    goal: 0.2,
  },
  {
    figure: "bytes allocated per request",
    of: "allocatedBytes",
    memory: 190_000,
    sqlite: 195_000,
    goal: 40_000,
  },
  {
    figure: "bytes promoted per request",
    of: "promotedBytes",
    memory: 9_000,
    sqlite: 1_500,
    goal: 300,
  },
  { figure: "sockets opened by warm requests", of: "sockets", memory: 0, sqlite: 0, goal: 0 },
  {
    figure: "bytes written per Step, alone",
    of: "writtenBytes",
    memory: null,
    sqlite: 400_000,
    goal: 60_000,
  },
];

describe.each(["memory", "sqlite"] as const)("on the %s store", (store) => {
  it("takes no more of anything than the ceilings allow", { timeout: 60_000 }, async () => {
    const counts = await countRequests(store);
    const above = ceilings
      .filter(({ of, [store]: most }) => most !== null && !(counts[of] <= most))
      .map(
        ({ figure, of, [store]: most, goal }) =>
          `${figure}: ${counts[of]}, at most ${most} (goal ${goal})`,
      );
    expect(above).toEqual([]);
    // A count that counts nothing would pass every ceiling.
    expect(
      Math.min(counts.promises, counts.promisesPerEvent, counts.allocatedBytes),
    ).toBeGreaterThan(0);
    if (store === "sqlite") expect(counts.statementsAlone).toBeGreaterThan(0);
  });
});
