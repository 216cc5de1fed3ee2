import { describe, expect, it } from "vitest";
import {
  fitsAt,
  rateHeaders,
  rateHold,
  rateLimitExceeded,
  rateStateAt,
  refusedByRate,
  toRateLimit,
} from "./rate-limits.ts";

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

/** A rate limit of 10 requests per second, of which two may come at once. */
const tenOf = () => toRateLimit({ id: "ten", limit: { requests: 10 }, per: "second", burst: 2 });
const estimates = { requests: 1, tokens: 100 };

describe("a refused hold of a rate limit", () => {
  const [second, micros] = [1_000_000, 1_000_000_000];
  const holdOf = () => rateHold({ rateLimit: tenOf(), subject: "k" }, estimates, second);

  it("takes the time of its requests from a pace, with room for the burst", () => {
    expect(holdOf()).toEqual({
      budgetId: "ten",
      subject: "k",
      periodStart: -1,
      mode: "hard",
      unit: "requests_pace",
      amount: 100_000,
      floor: micros,
      limit: micros + 200_000,
    });
    const none = toRateLimit({ id: "none", limit: { requests: 0 }, per: "second" });
    const refused = rateHold({ rateLimit: none, subject: "" }, estimates, second);
    expect(refused).toMatchObject({ unit: "requests_pace", limit: 0, amount: 0 });
    expect(refused.floor).toBeUndefined();
    const steps = toRateLimit({ id: "steps", limit: { concurrentSteps: 3 } });
    expect(rateHold({ rateLimit: steps, subject: "" }, estimates, second)).toEqual({
      budgetId: "steps",
      subject: "",
      periodStart: -2,
      mode: "hard",
      unit: "steps",
      amount: 1,
      limit: 3,
    });
  });

  it("fits from the moment at which its time is left, and never on a limit of 0", () => {
    const hold = holdOf();
    const refused = { hold, left: 40_000 };
    expect([1_000_059, 1_000_060].map((at) => fitsAt(refused, at))).toEqual([false, true]);
    const none = { ...hold, limit: 0, amount: 0 };
    expect(fitsAt({ hold: none, left: 0 }, second)).toBe(false);
    // It never has more time left than its room.
    const large = { ...hold, amount: 200_001 };
    expect(fitsAt({ hold: large, left: 0 }, second + 1_000)).toBe(false);
  });

  it("is recorded in the limit's own unit", () => {
    expect(refusedByRate(tenOf(), { hold: holdOf(), left: 99_999 })).toEqual({
      by: "rate_limit",
      rateLimitId: "ten",
      subject: "k",
      unit: "requests",
      needed: 1,
      left: 0,
    });
    const steps = toRateLimit({ id: "steps", limit: { concurrentSteps: 3 } });
    const full = rateHold({ rateLimit: steps, subject: "" }, estimates, second);
    expect(refusedByRate(steps, { hold: full, left: 0 })).toMatchObject({ needed: 1, left: 0 });
    const tokens = toRateLimit({ id: "t", limit: { tokens: 600 }, per: "minute", burst: 300 });
    const large = rateHold({ rateLimit: tokens, subject: "" }, estimates, second);
    expect(large.amount).toBe(10_000_000);
    expect(refusedByRate(tokens, { hold: large, left: 999_999 })).toMatchObject({
      unit: "tokens",
      needed: 100,
      left: 9,
    });
  });

  it("tells the client when to try again, and the remaining requests", () => {
    const [ten, hold] = [tenOf(), holdOf()];
    const error = rateLimitExceeded(ten, { hold, left: 40_000 }, second);
    expect(error).toMatchObject({
      code: "rate_limit_exceeded",
      message: "The rate limit ten is reached. Try again in 60ms.",
      headers: {
        "retry-after": "1",
        "retry-after-ms": "60",
        "x-ratelimit-limit-requests": "10",
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "160ms",
      },
    });
    const none = rateLimitExceeded(ten, { hold: { ...hold, limit: 0 }, left: 0 }, second);
    expect(none).toMatchObject({ message: "The rate limit ten allows no requests.", headers: {} });
    const steps = toRateLimit({ id: "steps", limit: { concurrentSteps: 3 } });
    const full = rateHold({ rateLimit: steps, subject: "" }, estimates, second);
    expect(rateLimitExceeded(steps, { hold: full, left: 0 }, second)).toMatchObject({
      message: expect.stringContaining("too many requests are in flight"),
      headers: { "retry-after": "1", "retry-after-ms": "1000" },
    });
    const tokens = toRateLimit({ id: "t", limit: { tokens: 60 }, per: "minute", burst: 60 });
    const errorOf = (units: number, left: number) => {
      const asked = { requests: 1, tokens: units };
      const large = rateHold({ rateLimit: tokens, subject: "" }, asked, second);
      return rateLimitExceeded(tokens, { hold: large, left }, second);
    };
    expect(errorOf(61, 0)).toMatchObject({
      message: expect.stringContaining("allows 60 tokens per minute, fewer than"),
      headers: {},
    });
    expect(errorOf(60, 0).message).toBe("The rate limit t is reached. Try again in 1m0s.");
    // It never asks a client to wait for no time at all.
    expect(errorOf(60, 60_000_000).message).toBe("The rate limit t is reached. Try again in 1ms.");
  });
});

it.each([
  [{ requests: 9 }, 1],
  [{ requests: 29 }, 2],
  [{ tokens: 0 }, 1],
])("a rate limit of %j has a burst of %d if none is given", (limit, burst) => {
  expect(toRateLimit({ id: "r", limit, per: "hour" })).toMatchObject({ burst, per: "hour" });
});

it("a rate limit of Steps in flight has no burst and no period", () => {
  expect(toRateLimit({ id: "r", limit: { concurrentSteps: 2 } })).toEqual({
    id: "r",
    scope: {},
    unit: "steps",
    limit: 2,
    per: null,
    burst: 0,
  });
});

describe("the headers of rate limits", () => {
  const stateOf = (unit: "requests" | "tokens", remaining: number, resetMs: number) => ({
    rateLimit: toRateLimit({
      id: `${unit} ${remaining}`,
      limit: unit === "tokens" ? { tokens: remaining + 10 } : { requests: remaining + 10 },
      per: "day",
    }),
    remaining,
    resetMs,
  });

  it("show the first of those with the least left, per unit", () => {
    const states = [
      stateOf("requests", 5, 1),
      stateOf("tokens", 2, 2),
      stateOf("requests", 3, 3),
      stateOf("requests", 3, 4),
      stateOf("requests", 4, 5),
    ];
    expect(rateHeaders(states)).toEqual({
      "x-ratelimit-limit-requests": "13",
      "x-ratelimit-remaining-requests": "3",
      "x-ratelimit-reset-requests": "3ms",
      "x-ratelimit-limit-tokens": "12",
      "x-ratelimit-remaining-tokens": "2",
      "x-ratelimit-reset-tokens": "2ms",
    });
    expect(rateHeaders([])).toEqual({});
  });

  it.each([
    [0, "0ms"],
    [999, "999ms"],
    [1_000, "1s"],
    [1_201, "1.3s"],
    [59_999, "60s"],
    [60_000, "1m0s"],
    [360_001, "6m1s"],
    [3_600_000, "1h0m0s"],
    [3_723_000, "1h2m3s"],
    [90_061_000, "25h1m1s"],
  ])("write %d milliseconds as %s", (resetMs, text) => {
    const headers = rateHeaders([stateOf("tokens", 1, resetMs)]);
    expect(headers["x-ratelimit-reset-tokens"]).toBe(text);
  });

  it("count the rest of the burst, and the time until all of it is back", () => {
    const [ten, at, micros] = [tenOf(), 1_000, 1_000_000];
    expect(rateStateAt(ten, 0, at)).toMatchObject({ remaining: 2, resetMs: 0 });
    expect(rateStateAt(ten, micros + 100_000, at)).toMatchObject({ remaining: 1, resetMs: 100 });
    expect(rateStateAt(ten, micros + 100_001, at)).toMatchObject({ remaining: 0, resetMs: 101 });
    expect(rateStateAt(ten, micros + 900_000, at)).toMatchObject({ remaining: 0, resetMs: 900 });
  });
});
