import { describe, expect, it } from "vitest";
import type { Clock } from "../kernel/clock.ts";
import { ping, withHeartbeat } from "./event-stream.ts";

/** A clock that moves by hand. */
function createClock(): Clock & { advance(milliseconds: number): void; waiting(): number } {
  let now = 0;
  const timers = new Set<{ at: number; run: () => void }>();
  return {
    now: () => now,
    monotonic: () => now,
    after(milliseconds, run) {
      const timer = { at: now + milliseconds, run };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    advance(milliseconds) {
      now += milliseconds;
      for (const timer of timers)
        if (timer.at <= now) {
          timers.delete(timer);
          timer.run();
        }
    },
    waiting: () => timers.size,
  };
}

/** A source whose items are given by hand. */
function createSource() {
  let answer = Promise.withResolvers<IteratorResult<string, undefined>>();
  const seen = { asked: 0, returned: 0 };
  return {
    seen,
    give: (value: string) => answer.resolve({ done: false, value }),
    end: () => answer.resolve({ done: true, value: undefined }),
    fail: (error: Error) => answer.reject(error),
    [Symbol.asyncIterator]: (): AsyncIterator<string, undefined> => ({
      next() {
        seen.asked += 1;
        answer = Promise.withResolvers();
        return answer.promise;
      },
      async return() {
        seen.returned += 1;
        return { done: true, value: undefined };
      },
    }),
  };
}

function start() {
  const clock = createClock();
  const source = createSource();
  const iterator = withHeartbeat(source, { clock, every: 15 })[Symbol.asyncIterator]();
  return { clock, source, iterator };
}

describe("withHeartbeat", () => {
  it("passes items on and leaves no timer behind", async () => {
    const { clock, source, iterator } = start();
    const first = iterator.next();
    clock.advance(14);
    source.give("a");
    expect(await first).toEqual({ done: false, value: "a" });
    const last = iterator.next();
    source.end();
    expect(await last).toEqual({ done: true, value: undefined });
    expect(clock.waiting()).toBe(0);
  });

  it("pings while the source is silent, and asks it only once", async () => {
    const { clock, source, iterator } = start();
    for (let beat = 0; beat < 3; beat++) {
      const item = iterator.next();
      clock.advance(15);
      expect(await item).toEqual({ done: false, value: ping });
    }
    const item = iterator.next();
    source.give("a");
    expect(await item).toEqual({ done: false, value: "a" });
    expect(source.seen.asked).toBe(1);
    await iterator.return?.();
    expect(clock.waiting()).toBe(0);
  });

  it("counts silence from the read that waits, not from the item before it", async () => {
    const { clock, source, iterator } = start();
    const first = iterator.next();
    source.give("a");
    await first;
    clock.advance(10);
    const item = iterator.next();
    clock.advance(14);
    source.give("b");
    expect(await item).toEqual({ done: false, value: "b" });
    const silent = iterator.next();
    clock.advance(15);
    expect(await silent).toEqual({ done: false, value: ping });
  });

  it("keeps what the source gave between two reads", async () => {
    const { clock, source, iterator } = start();
    const silent = iterator.next();
    clock.advance(15);
    expect(await silent).toEqual({ done: false, value: ping });
    source.give("a");
    expect(await iterator.next()).toEqual({ done: false, value: "a" });
  });

  it("passes the end on at once, even while the source is silent", async () => {
    const { clock, source, iterator } = start();
    const waiting = iterator.next();
    const returned = iterator.return?.();
    expect(source.seen.returned).toBe(1);
    expect(await waiting).toEqual({ done: true, value: undefined });
    expect(await returned).toEqual({ done: true, value: undefined });
    expect(clock.waiting()).toBe(0);
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
    expect(source.seen.asked).toBe(1);
  });

  it("passes the source's error on", async () => {
    const { clock, source, iterator } = start();
    const item = iterator.next();
    source.fail(new Error("broken"));
    await expect(item).rejects.toThrow("broken");
    expect(clock.waiting()).toBe(0);
  });
});
