import { expect, it } from "vitest";
import { systemClock } from "./clock.ts";

it("a timer beyond the machine's maximum waits instead of firing at once", async () => {
  let hasFired = false;
  const cancel = systemClock.after(30 * 86_400_000, () => {
    hasFired = true;
  });
  await new Promise((resolve) => setTimeout(resolve, 5));
  cancel();
  expect(hasFired).toBe(false);
});
