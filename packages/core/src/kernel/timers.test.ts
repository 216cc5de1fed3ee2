import { describe, expect, it } from "vitest";
import type { Clock } from "./clock.ts";
import { createTimers, type Timed } from "./timers.ts";

const never = Number.POSITIVE_INFINITY;

/** A clock that the test moves from timer to timer. It counts how often a timer was set. */
function createClock() {
  let now = 0;
  let timers: { readonly at: number; readonly run: () => void }[] = [];
  let set = 0;
  const clock: Clock = {
    now: () => now,
    monotonic: () => now,
    after(milliseconds, run) {
      set++;
      const timer = { at: now + milliseconds, run };
      timers.push(timer);
      return () => {
        timers = timers.filter((other) => other !== timer);
      };
    },
  };
  return {
    ...clock,
    waiting: () => timers.length,
    set: () => set,
    moveTo(time: number): void {
      for (let next = timers[0]; next && next.at <= time; next = timers[0]) {
        timers.shift();
        now = next.at;
        next.run();
      }
      now = time;
    },
  };
}

/** Is due once, at a time that can be moved. */
function once(dueAt: number, seen: number[]): Timed & { dueAt: number } {
  return {
    dueAt,
    check(now) {
      if (now >= this.dueAt) {
        seen.push(now);
        this.dueAt = never;
      }
      return this.dueAt;
    },
  };
}

describe("many due times on one timer", () => {
  it("fire exactly when they are due, in any order", () => {
    const clock = createClock();
    const timers = createTimers(clock);
    const seen: number[] = [];
    for (const due of [30, 7, 7, 99.5]) timers.add(once(due, seen), due);
    clock.moveTo(100);
    expect(seen).toEqual([7, 7, 30, 99.5]);
  });

  it("use the clock only for one that is the earliest of all", () => {
    const clock = createClock();
    const timers = createTimers(clock);
    const moved = once(50, []);
    timers.add(moved, 50);
    for (let due = 51; due < 1_000; due++) {
      moved.dueAt = due;
      timers.checkBy(due);
    }
    expect(clock.set()).toBe(1);
    const seen: number[] = [];
    timers.add(once(10, seen), 10);
    clock.moveTo(2_000);
    expect(seen).toEqual([10]);
    expect(moved.dueAt).toBe(never);
  });

  it("leave no timer behind when nothing is timed", () => {
    const clock = createClock();
    const timers = createTimers(clock);
    const slots = [5, 6].map((due) => timers.add(once(due, []), due));
    for (const slot of slots) timers.remove(slot);
    expect(clock.waiting()).toBe(0);
    const seen: number[] = [];
    timers.add(once(8, seen), 8);
    clock.moveTo(8);
    expect(seen).toEqual([8]);
  });

  it("fire at once if they pass while the others are checked", () => {
    let now = 0;
    const set: number[] = [];
    let run = (): void => {};
    const timers = createTimers({
      now: () => now,
      monotonic: () => now++,
      after(milliseconds, next) {
        set.push(milliseconds);
        run = next;
        return () => {};
      },
    });
    const seen: number[] = [];
    timers.add(once(10, seen), 10);
    timers.add({ check: (at) => at + 0.5 }, 10);
    now = 10;
    run();
    expect(seen).toEqual([10]);
    expect(set).toEqual([10, 0]);
  });

  it("fire a little late, and together, if there are very many", () => {
    const clock = createClock();
    const timers = createTimers(clock);
    const seen: number[] = [];
    const all = Array.from({ length: 10_000 }, (_, at) => 100 + at / 10);
    for (const due of all) timers.add(once(due, seen), due);
    clock.moveTo(2_000);
    expect(clock.set()).toBeLessThan(110);
    expect(seen).toHaveLength(all.length);
    expect(Math.max(...seen.map((at, place) => at - (all[place] ?? 0)))).toBeLessThanOrEqual(10);
  });
});
