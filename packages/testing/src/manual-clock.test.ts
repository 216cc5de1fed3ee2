import { describe, expect, it } from "vitest";
import { manualClock } from "./manual-clock.ts";

describe("a manual clock", () => {
  it("runs timers in order, each at its time, including timers set on the way", async () => {
    const clock = manualClock();
    const seen: [string, number][] = [];
    const note = (name: string) => () => seen.push([name, clock.monotonic()]);
    clock.after(30, note("late"));
    clock.after(10, () => {
      note("early")();
      void Promise.resolve().then(() => clock.after(5, note("chained")));
    });
    clock.after(31, note("not yet"));
    await clock.advance(30);
    expect(seen).toEqual([
      ["early", 10],
      ["chained", 15],
      ["late", 30],
    ]);
    expect(clock.timers()).toBe(1);
  });

  it("moves wall and monotonic time together, or only wall time", async () => {
    const clock = manualClock("2026-03-01T00:00:00Z");
    await clock.advance("1h");
    expect([new Date(clock.now()).toISOString(), clock.monotonic()]).toEqual([
      "2026-03-01T01:00:00.000Z",
      3_600_000,
    ]);
    clock.after(1, () => expect.unreachable());
    clock.setWall("2026-02-01T00:00:00Z");
    expect([clock.now(), clock.monotonic()]).toEqual([Date.UTC(2026, 1, 1), 3_600_000]);
  });

  it("reports wall time in whole milliseconds, even if a timer is due between two", async () => {
    const clock = manualClock();
    const seen: number[] = [];
    clock.after(0.6, () => seen.push(clock.now() - Date.UTC(2026, 0, 1), clock.monotonic()));
    await clock.advance(1);
    expect([...seen, clock.now() - Date.UTC(2026, 0, 1)]).toEqual([0, 0.6, 1]);
  });

  it("ignores a cancelled timer", async () => {
    const clock = manualClock();
    const cancel = clock.after(1, () => expect.unreachable());
    cancel();
    await clock.advance(2);
    expect(clock.timers()).toBe(0);
  });

  it("advances until a promise settles, up to a limit", async () => {
    const clock = manualClock();
    const waited = new Promise<string>((resolve) => {
      clock.after(60_000, () => clock.after(60_000, () => resolve("done")));
    });
    await expect(clock.until(waited)).resolves.toBe("done");
    expect(clock.monotonic()).toBe(120_000);
    await expect(clock.until(Promise.reject(new Error("no")))).rejects.toThrow("no");
    await expect(clock.until(new Promise(() => {}), "1m")).rejects.toThrow(RangeError);
  });

  it("rejects invalid durations and times", async () => {
    const clock = manualClock();
    await expect(clock.advance(-1)).rejects.toThrow(RangeError);
    expect(() => clock.setWall("yesterday")).toThrow(RangeError);
  });
});
