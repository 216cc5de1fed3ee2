import { describe, expect, it } from "vitest";
import type { KeyRepository } from "../contracts/key-repository.ts";
import { createLastUsed } from "./last-used.ts";

type Uses = Parameters<KeyRepository["touch"]>[0];

/** Records uses for a repository that fails a number of times, with a clock whose timers the test runs. */
function noting({ failures = 0 } = {}) {
  const touched: Uses[] = [];
  const timers: (() => void)[] = [];
  let now = 0;
  const touch = async (uses: Uses): Promise<void> => {
    if (failures-- > 0) throw new Error("away");
    touched.push(uses);
  };
  const after = (_milliseconds: number, run: () => void) => {
    timers.push(run);
    return () => {};
  };
  const clock = { now: () => ++now, monotonic: () => now, after };
  const { note, close } = createLastUsed({ touch }, clock);
  const use = (keyId: string) => note({ organizationId: "acme", userId: "ada", keyId });
  return { touched, timers, use, close };
}

describe("the last use of a key", () => {
  it("is written in batches, only the latest of each key", async () => {
    const { touched, timers, use, close } = noting();
    for (const keyId of ["a", "b", "a"]) use(keyId);
    expect(timers).toHaveLength(1);
    timers[0]?.();
    await close();
    expect(touched).toEqual([
      [
        { organizationId: "acme", keyId: "a", at: 3 },
        { organizationId: "acme", keyId: "b", at: 2 },
      ],
    ]);
  });

  it("is kept for the next batch if it can't be written", async () => {
    const { touched, timers, use, close } = noting({ failures: 1 });
    use("a");
    timers[0]?.();
    await new Promise(setImmediate);
    use("b");
    await close();
    expect(touched.flat().map(({ keyId }) => keyId)).toEqual(["a", "b"]);
  });

  it("is recorded for at most ten thousand keys", async () => {
    const { touched, use, close } = noting();
    for (let key = 0; key < 10_002; key++) use(`key-${key}`);
    use("key-0");
    await close();
    expect(touched.flat()).toHaveLength(10_000);
    expect(touched.flat()[0]?.at).toBe(10_001);
  });
});
