import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, inject, it, onTestFinished, vi } from "vitest";
import { type CheckedLimit, checkHistory } from "../src/rate-limits/check-history.ts";
import { loadLimits } from "../src/rate-limits/run-load.ts";
import type { DatabaseLocation } from "../src/stores/database-location.ts";

vi.setConfig({ testTimeout: 60_000 });

const twoPerSecond: CheckedLimit = {
  id: "two",
  unit: "requests",
  limit: 2,
  per: "second",
  burst: 1,
};
const one = { settledAt: 0, used: 1, reserved: 1 };
const none = { inFlight: [], rejections: [] };

/** Steps of one subject that opened at these times. */
const openedAt = (...times: readonly number[]) =>
  times.map((at) => ({ ...one, subject: "key", at }));

describe("the checker of rate limits", () => {
  it("finds the window with more than the limit and the burst", () => {
    const steps = [...openedAt(0, 900, 1_000, 1_900, 2_800), { ...one, subject: "other", at: 0 }];
    expect(checkHistory({ limit: twoPerSecond, steps, ...none })).toEqual([
      { subject: "key", most: 3, allowed: 3, share: null },
      { subject: "other", most: 1, allowed: 3, share: null },
    ]);
    const more = [...steps, ...openedAt(1_899)];
    expect(checkHistory({ limit: twoPerSecond, steps: more, ...none })[0]).toMatchObject({
      most: 4,
      allowed: 3,
    });
  });

  it("allows what earlier Steps returned in the window, and nothing that its own Steps did", () => {
    const limit = { ...twoPerSecond, unit: "tokens", limit: 100, burst: 10 } as const;
    const before = { subject: "key", at: 0, settledAt: 1_500, used: 10, reserved: 60 };
    const within = { subject: "key", at: 1_200, settledAt: 1_300, used: 150, reserved: 200 };
    expect(checkHistory({ limit, steps: [before, within], ...none })).toMatchObject([
      { most: 150, allowed: 110 },
    ]);
    const late = { ...within, at: 1_600, settledAt: 1_700 };
    expect(checkHistory({ limit, steps: [before, late], ...none })).toMatchObject([
      { most: 150, allowed: 160 },
    ]);
  });

  it("finds more Steps in flight than the limit, and how many there were over time", () => {
    const limit = { ...twoPerSecond, unit: "steps", per: null, burst: 0 } as const;
    const rejections = [0, 1_000].map((at) => ({ subject: "key", at }));
    const inFlight = [
      { subject: "key", at: 0, held: 2 },
      { subject: "key", at: 500, held: 1 },
    ];
    const history = { limit, steps: [], inFlight, rejections };
    expect(checkHistory(history)).toEqual([{ subject: "key", most: 2, allowed: 2, share: 0.75 }]);
    const three = [...inFlight, { subject: "key", at: 900, held: 3 }];
    expect(checkHistory({ ...history, inFlight: three })[0]?.most).toBe(3);
  });

  it("finds a limit that was not served although requests were rejected", () => {
    const rejections = [0, 10_000].map((at) => ({ subject: "key", at }));
    const steps = openedAt(...Array.from({ length: 9 }, (_, index) => index * 1_000 + 500));
    const history = { limit: twoPerSecond, steps, inFlight: [], rejections };
    expect(checkHistory(history)).toMatchObject([{ share: 0.5 }]);
  });
});

describe.each(["SQLite", "PostgreSQL"])("rate limits on %s", (store) => {
  it("keep their limit and burst for clients in several processes", async () => {
    const load = { clients: 16, processes: 2, seconds: 8, stepMs: 500, seed: 7 };
    const result = await loadLimits(placeOn(store), load);
    expect([result.failed, result.problems]).toEqual([0, []]);
    for (const history of result.histories) {
      expect(history.rejections.length, history.limit.id).toBeGreaterThan(0);
      const results = checkHistory(history);
      expect(results.length, history.limit.id).toBeGreaterThan(0);
      for (const { subject, most, allowed } of results)
        expect(most, `${history.limit.id} of ${subject}`).toBeLessThanOrEqual(allowed);
    }
  });
});

function placeOn(store: string): DatabaseLocation {
  if (store === "PostgreSQL")
    return { url: inject("postgresUrl"), schema: `rates_${randomBytes(6).toString("hex")}` };
  const folder = mkdtempSync(join(tmpdir(), "tollgate-rates-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return { filename: join(folder, "tollgate.db") };
}
