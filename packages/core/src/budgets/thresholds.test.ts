import { describe, expect, it } from "vitest";
import { createThresholdTracker } from "./thresholds.ts";

const counter = { budgetId: "b", subject: "", periodStart: 0, limit: 100, warnAt: [0.5, 0.9] };

describe("the thresholds of a counter", () => {
  it("are read when they may be reached, and otherwise once a second", () => {
    const { charge, newlyReached } = createThresholdTracker();
    expect(charge(counter, 10, 0)).toBe(true);
    expect(newlyReached(counter, 10, 0)).toEqual([]);
    expect(charge(counter, 39, 999)).toBe(false);
    expect(charge(counter, 1, 999)).toBe(true);
    expect(newlyReached(counter, 50, 999)).toEqual([0.5]);
    expect(charge(counter, 1, 1_000)).toBe(false);
    expect(charge(counter, 1, 1_999)).toBe(true);
    // Another process may have charged it, and a clock may go back.
    expect(newlyReached(counter, 95, 1_999)).toEqual([0.9]);
    expect(newlyReached(counter, 99, 1_999)).toEqual([]);
    expect(charge(counter, 0, 999)).toBe(true);
  });

  it("start over with a new limit, and are never reached by nothing", () => {
    const { charge, newlyReached } = createThresholdTracker();
    expect(newlyReached(counter, 90, 0)).toEqual([0.5, 0.9]);
    const raised = { ...counter, limit: 180 };
    expect(charge(raised, 1, 0)).toBe(true);
    expect(newlyReached(raised, 90, 0)).toEqual([0.5]);
    expect(newlyReached({ ...counter, budgetId: "none", limit: 0 }, 0, 0)).toEqual([]);
  });

  it("can change: those above the highest that was reported are found", () => {
    const { charge, newlyReached } = createThresholdTracker();
    expect(newlyReached(counter, 60, 0)).toEqual([0.5]);
    const changed = { ...counter, warnAt: [0.2, 0.5, 0.7] };
    expect(charge(changed, 9, 0)).toBe(false);
    expect(newlyReached(changed, 69, 0)).toEqual([]);
    const only = { ...counter, warnAt: [0.7] };
    expect(charge(only, 1, 0)).toBe(true);
    expect(newlyReached(only, 70, 0)).toEqual([0.7]);
  });

  it("are remembered for ten thousand counters", () => {
    const { charge, newlyReached } = createThresholdTracker();
    const named = (name: number) => ({ ...counter, subject: `${name}` });
    for (let name = 0; name < 10_000; name++) newlyReached(named(name), 1, 0);
    expect(charge(named(0), 1, 1)).toBe(false);
    newlyReached(named(10_000), 1, 0);
    expect([charge(named(1), 1, 1), charge(named(0), 1, 1)]).toEqual([false, true]);
  });
});
