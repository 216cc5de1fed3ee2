import { describe, expect, it } from "vitest";
import { rateHold, rateStateAt, toRateLimit } from "./rate-limits.ts";

const now = Date.UTC(2100, 0);
const most = 1_000_000_000;

describe("the hold of a rate limit", () => {
  it.each([
    [{ requests: 1 }, 1],
    [{ tokens: 1 }, 1],
    [{ tokens: 7 }, 1],
    [{ requests: most }, 1],
    [{ tokens: most }, most],
  ])("of %j per day stays exact with the largest burst", (limit, tokens) => {
    const rateLimit = toRateLimit({ id: "slow", limit, per: "day", burst: most });
    const hold = rateHold({ rateLimit, subject: "" }, { requests: 1, tokens }, now);
    expect(hold.limit).toSatisfy(Number.isSafeInteger);
    expect(hold.amount).toSatisfy(Number.isSafeInteger);
    expect(hold.amount).toBeLessThanOrEqual(hold.limit - (hold.floor ?? 0));
  });

  it.each([1, 3, 7, 60, 450_000, 999_999_937, most])(
    "finds all of a burst of %d left",
    (tokens) => {
      for (const per of ["second", "minute", "hour", "day"] as const) {
        const rateLimit = toRateLimit({ id: "all", limit: { tokens }, per, burst: tokens });
        expect(rateStateAt(rateLimit, 0, now)).toMatchObject({ remaining: tokens, resetMs: 0 });
      }
    },
  );
});
