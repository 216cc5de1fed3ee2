import { setImmediate as nextTurn } from "node:timers/promises";
import { systemClock } from "@tollgate/core/provider";
import type { Dispatcher } from "undici";
import { describe, expect, it } from "vitest";
import { Exchange } from "./exchange.ts";

describe("answers of an upstream", () => {
  it("pass on what arrived together only once all of it is read (decision 0042)", async () => {
    const seen: string[] = [];
    const answers = await Promise.all([openAnswer("one", seen), openAnswer("two", seen)]);
    for (const { name, read } of answers) {
      seen.push(`${name} read`);
      read();
      // Node calls back for each socket separately, with all ticks and promises of one before the next.
      await new Promise<void>((resolve) => process.nextTick(resolve));
    }
    await nextTurn();
    expect(seen).toEqual(["one read", "two read", "one passed on", "two passed on"]);
  });
});

/** An exchange whose receiver has the head of its answer. `read` lets more of it arrive. */
async function openAnswer(name: string, seen: string[]) {
  const sent = Promise.withResolvers<Dispatcher.DispatchHandler>();
  const opened = Promise.withResolvers<void>();
  const pool = {
    dispatch(_: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler) {
      sent.resolve(handler);
      return true;
    },
  };
  new Exchange(
    pool,
    {
      path: "/",
      headers: {},
      body: "{}",
      totalBytes: 1_024,
      connectWithin: 1_000,
      clock: systemClock,
    },
    {
      head: () => opened.resolve(),
      data: () => void seen.push(`${name} passed on`),
      end: () => {},
      failed: (thrown) => void seen.push(String(thrown)),
    },
  );
  const handler = await sent.promise;
  const controller: Dispatcher.DispatchController = {
    aborted: false,
    paused: false,
    reason: null,
    rawHeaders: null,
    rawTrailers: null,
    abort: () => {},
    pause: () => {},
    resume: () => {},
  };
  handler.onRequestStart?.(controller, null);
  handler.onResponseStart?.(controller, 200, {});
  await opened.promise;
  return { name, read: () => handler.onResponseData?.(controller, Buffer.from("data: x\n\n")) };
}
