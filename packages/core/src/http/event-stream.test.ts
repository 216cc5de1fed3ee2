import { describe, expect, it } from "vitest";
import type { Clock } from "../kernel/clock.ts";
import { createTimers } from "../kernel/timers.ts";
import { EventOutput, ping } from "./event-stream.ts";
import type { TextSink } from "./gateway-response.ts";

/** A clock that the test moves. */
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

/** A sink that the test fills and empties. */
function createSink() {
  let room: PromiseWithResolvers<void> | null = null;
  const texts: string[] = [];
  const sink: TextSink = {
    write(text) {
      texts.push(text);
      return room?.promise ?? null;
    },
    end: () => {},
    fail: () => {},
  };
  return {
    sink,
    texts,
    fill(): void {
      room = Promise.withResolvers();
    },
    empty(): void {
      room?.resolve();
      room = null;
    },
  };
}

function start() {
  const clock = createClock();
  const sink = createSink();
  const output = new EventOutput(sink.sink, { timers: createTimers(clock), every: 15, text: ping });
  return { clock, ...sink, output };
}

/** Waits until every pending promise callback has run. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

describe("an event stream's output", () => {
  it("joins and writes pieces, and leaves no timer behind", () => {
    const { clock, texts, output } = start();
    clock.advance(14);
    expect(output.write(["a", "b"])).toBeNull();
    expect(output.write([])).toBeNull();
    expect(output.write(["", "c"])).toBeNull();
    expect(texts).toEqual(["ab", "c"]);
    output.stop();
    expect(clock.waiting()).toBe(0);
  });

  it("pings while idle, counting from the last write", () => {
    const { clock, texts, output } = start();
    for (let beat = 0; beat < 3; beat++) clock.advance(15);
    expect(texts).toEqual([ping, ping, ping]);
    clock.advance(10);
    output.write(["a"]);
    clock.advance(14);
    expect(texts).toEqual([ping, ping, ping, "a"]);
    clock.advance(1);
    expect(texts).toEqual([ping, ping, ping, "a", ping]);
  });

  it("doesn't ping a client that hasn't read everything yet", async () => {
    const { clock, texts, output, fill, empty } = start();
    fill();
    const room = output.write(["a"]);
    for (let beat = 0; beat < 3; beat++) clock.advance(15);
    expect(texts).toEqual(["a"]);
    empty();
    await room;
    clock.advance(14);
    expect(texts).toEqual(["a"]);
    clock.advance(1);
    expect(texts).toEqual(["a", ping]);
  });

  it("creates no more pieces than there is room for", async () => {
    const { texts, output, fill, empty } = start();
    let made = 0;
    function* pieces(): Generator<string> {
      for (; made < 5; made++) yield "x".repeat(40_000);
    }
    fill();
    const written = output.write(pieces());
    await settled();
    expect(made).toBe(1);
    expect(texts).toHaveLength(1);
    empty();
    await written;
    expect(texts.join("")).toHaveLength(200_000);
    expect(made).toBe(5);
  });

  it("keeps the order of writes while the sink is full", async () => {
    const { texts, output, fill, empty } = start();
    const large = ["1", "2", "3", "4"].map((digit) => digit.repeat(70_000));
    fill();
    const first = output.write(large);
    const second = output.write(["a", "b"]);
    const third = output.write(["c"]);
    await settled();
    expect(texts).toHaveLength(1);
    empty();
    await Promise.all([first, second, third]);
    expect(texts).toEqual([...large, "ab", "c"]);
    expect(output.write(["d"])).toBeNull();
  });

  it("writes a ping that filled the sink before the next event", async () => {
    const { clock, texts, output, fill, empty } = start();
    fill();
    clock.advance(15);
    const written = output.write(["a"]);
    await settled();
    expect(texts).toEqual([ping]);
    empty();
    await written;
    expect(texts).toEqual([ping, "a"]);
  });

  it("writes nothing after stop, and settles every waiting write", async () => {
    const { clock, texts, output, fill, empty } = start();
    fill();
    const written = output.write(["x".repeat(70_000), "y"]);
    output.stop();
    empty();
    await written;
    clock.advance(60);
    expect(output.write(["z"])).toBeNull();
    expect(texts).toEqual(["x".repeat(70_000)]);
    expect(clock.waiting()).toBe(0);
  });

  it("rejects when a piece can't be created, and continues with the next", async () => {
    const { texts, output } = start();
    function* failing(): Generator<string> {
      yield "x".repeat(70_000);
      throw new Error("broken");
    }
    await expect(output.write(failing())).rejects.toThrow("broken");
    expect(output.write(["a"])).toBeNull();
    expect(texts.at(-1)).toBe("a");
  });
});
