import { expect, it } from "vitest";
import { pushedClock } from "./pushed-clock.ts";

it("runs only the timers that a push makes due, the earliest first", () => {
  const clock = pushedClock();
  const ran: string[] = [];
  clock.after(2_000, () => ran.push("second"));
  clock.after(1_000, () => ran.push("first"));
  clock.after(60_000, () => ran.push("later"));
  const cancel = clock.after(500, () => ran.push("cancelled"));
  cancel();
  const before = clock.now();
  clock.push(2_000);
  expect(ran).toEqual(["first", "second"]);
  expect(clock.now() - before).toBeGreaterThanOrEqual(2_000);
  expect(clock.timers()).toBe(1);
});

it("otherwise runs like the machine's clock", async () => {
  const clock = pushedClock();
  clock.push(10_000);
  const begun = clock.monotonic();
  await new Promise<void>((resolve) => {
    const keepAlive = setInterval(() => {}, 1_000);
    clock.after(5, () => {
      clearInterval(keepAlive);
      resolve();
    });
  });
  // A busy event loop may count the wait from an earlier time, so this only checks that time advances.
  expect(clock.monotonic()).toBeGreaterThan(begun);
  expect(clock.timers()).toBe(0);
});
