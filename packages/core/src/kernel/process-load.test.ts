import { expect, it } from "vitest";
import { createProcessLoad } from "./process-load.ts";

/** The load of an event loop whose turns take as long as a test says. */
function loop() {
  let now = 0;
  let due: (() => void)[] = [];
  const load = createProcessLoad({
    now: () => now,
    monotonic: () => now,
    after(_, run) {
      due.push(run);
      return () => {};
    },
  });
  return {
    ...load,
    /** The loop is busy for so long, then its timers fire. */
    turn(milliseconds: number): void {
      now += milliseconds;
      const fired = due;
      due = [];
      for (const run of fired) run();
    },
    /** The loop is busy, and its timers have not fired yet. */
    block(milliseconds: number): void {
      now += milliseconds;
    },
    timers: () => due.length,
  };
}

it("reports the shorter of two delays in a row, so that one long computation does not count", () => {
  const { loopDelay, turn } = loop();
  for (const [length, delay] of [
    [301, 0],
    [20, 19],
    [401, 19],
    [201, 200],
    [11, 10],
  ] as const) {
    loopDelay();
    turn(length);
    turn(10);
    expect(loopDelay()).toBe(delay);
  }
});

it("reports a delay that is not over yet", () => {
  const { loopDelay, turn, block } = loop();
  loopDelay();
  turn(301);
  turn(10);
  loopDelay();
  block(101);
  expect(loopDelay()).toBe(100);
  block(400);
  expect(loopDelay()).toBe(300);
});

it("measures at most every ten milliseconds, and forgets after a second without requests", () => {
  const { loopDelay, turn, timers } = loop();
  loopDelay();
  loopDelay();
  expect(timers()).toBe(1);
  turn(301);
  turn(9);
  loopDelay();
  expect(timers()).toBe(0);
  turn(1);
  loopDelay();
  turn(301);
  expect(loopDelay()).toBe(300);
  turn(1_001);
  expect(loopDelay()).toBe(0);
});

it("reports the share of the heap in use", () => {
  const share = createProcessLoad().heapShare();
  expect(share).toBeGreaterThan(0);
  expect(share).toBeLessThan(1);
});
