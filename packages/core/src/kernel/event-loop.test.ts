import { once } from "node:events";
import { nextTick } from "node:process";
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { createAfterReads, createYield } from "./event-loop.ts";

describe("work that yields", () => {
  /** Runs works of some milliseconds each, and returns the works of each turn of the event loop. */
  async function turnsOf(works: readonly (readonly number[])[]) {
    let now = 0;
    const yieldToOthers = createYield({ monotonic: () => now });
    const turns: string[][] = [];
    let left = works.length;
    const run = async (parts: readonly number[], at: number): Promise<void> => {
      for (const [part, ms] of parts.entries()) {
        await yieldToOthers();
        // A store that reads resolves some promises before it begins.
        await Promise.resolve();
        now += ms;
        turns.at(-1)?.push(`${at}.${part}`);
      }
      left--;
    };
    for (const [at, parts] of works.entries()) void run(parts, at);
    while (left > 0) {
      turns.push([]);
      await nextTurn();
    }
    return turns;
  }

  it("goes on in one turn as long as that is short, in order", async () => {
    expect(await turnsOf([[1, 1], [1, 1], [1]])).toEqual([
      ["0.0", "1.0", "2.0"],
      ["0.1", "1.1"],
    ]);
  });

  it("waits for the next turn once a turn has taken 20 milliseconds", async () => {
    expect(await turnsOf([[8], [8], [8], [30, 1], [8]])).toEqual([
      ["0.0", "1.0", "2.0"],
      ["3.0"],
      ["4.0", "3.1"],
    ]);
  });

  it("gets its turn, however much other work yields meanwhile", async () => {
    const turns = await turnsOf([[50, 50, 50], [50, 50, 50], [1]]);
    expect(turns.flat().indexOf("2.0")).toBe(2);
    expect(Math.max(...turns.map((works) => works.length))).toBe(2);
  });
});

describe("work after reads", () => {
  it("runs together, before anything that it schedules", async () => {
    const afterReads = createAfterReads();
    const log: string[] = [];
    const add = (name: string) =>
      afterReads(() => {
        log.push(name);
        nextTick(() => log.push(`tick of ${name}`));
        queueMicrotask(() => log.push(`microtask of ${name}`));
      });
    add("a");
    add("b");
    await Promise.resolve();
    expect(log).toEqual([]);
    await nextTurn();
    expect(log.slice(0, 2)).toEqual(["a", "b"]);
    expect(log).toHaveLength(6);
  });

  it("leaves work that is added meanwhile to the next turn", async () => {
    const afterReads = createAfterReads();
    const log: string[] = [];
    afterReads(() => {
      log.push("first");
      afterReads(() => log.push("second"));
    });
    await nextTurn();
    expect(log).toEqual(["first"]);
    await nextTurn();
    expect(log).toEqual(["first", "second"]);
  });

  it("is spread over turns if there is much of it, in order", async () => {
    const afterReads = createAfterReads();
    const log: number[] = [];
    for (let at = 0; at < 150; at++) afterReads(() => log.push(at));
    const done = [];
    for (let turn = 0; turn < 3; turn++) {
      await nextTurn();
      done.push(log.length);
      if (turn === 0) afterReads(() => log.push(150));
    }
    expect(done).toEqual([64, 128, 151]);
    expect(log).toEqual(Array.from({ length: 151 }, (_, at) => at));
  });

  it("runs at once while nothing else is in flight, except every ninth", async () => {
    const afterReads = createAfterReads(() => true);
    const log: number[] = [];
    for (let at = 1; at <= 10; at++) afterReads(() => log.push(at));
    expect(log).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    await nextTurn();
    afterReads(() => log.push(11));
    expect(log).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
  });

  it("runs the rest if some work throws, and leaves the error uncaught", async () => {
    const others = process.listeners("uncaughtException");
    process.removeAllListeners("uncaughtException");
    onTestFinished(() => {
      for (const other of others) process.on("uncaughtException", other);
    });
    const uncaught = once(process, "uncaughtException");
    const failure = new Error("broken");
    const afterReads = createAfterReads();
    const log: string[] = [];
    afterReads(() => {
      throw failure;
    });
    afterReads(() => log.push("rest"));
    expect(await uncaught).toContain(failure);
    expect(log).toEqual(["rest"]);
  });
});
