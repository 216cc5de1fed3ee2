import { expect, it } from "vitest";
import { type FailureKind, PostgresFailure } from "./failure.ts";
import { createPause, createRetry } from "./retry.ts";

function attempts(failures: readonly Partial<FailureKind>[], evenIfDone = true) {
  const pauses: number[] = [];
  const seen: boolean[] = [];
  const tryAgain = createRetry(
    createPause({ random: () => 0.5, pause: async (milliseconds) => pauses.push(milliseconds) }),
  );
  const result = tryAgain(
    async (isUnsure) => {
      const kind = failures[seen.length];
      seen.push(isUnsure);
      if (kind) throw new PostgresFailure("failed", kind);
      return "done";
    },
    { evenIfDone },
  );
  return { result, pauses, seen };
}

const rolledBack = { isPassing: true };
const cutOff = { isPassing: true, isLost: true, isUnsure: true };

it("repeats a rolled-back transaction after growing pauses, at most five times (F35)", async () => {
  const four = attempts([rolledBack, rolledBack, rolledBack, rolledBack]);
  expect(await four.result).toBe("done");
  expect(four.pauses).toEqual([20, 40, 80, 160]);
  const endless = attempts(Array.from({ length: 99 }, () => rolledBack));
  await expect(endless.result).rejects.toThrow("failed");
  expect(endless.seen).toHaveLength(6);
});

it("tells a retry that an earlier run may have committed (F34)", async () => {
  const { result, seen } = attempts([rolledBack, cutOff, rolledBack]);
  await result;
  expect(seen).toEqual([false, false, true, true]);
});

it("does not repeat a run that may have committed unless that is harmless", async () => {
  const { result, seen } = attempts([cutOff], false);
  await expect(result).rejects.toThrow("failed");
  expect(seen).toHaveLength(1);
});

it("gives up after a second timeout (F37)", async () => {
  const timeout = { ...cutOff, isTimeout: true };
  const { result, seen } = attempts([timeout, timeout]);
  await expect(result).rejects.toThrow("failed");
  expect(seen).toHaveLength(2);
});

it("does not repeat permanent failures, or errors from outside the database", async () => {
  const { result, seen } = attempts([{}]);
  await expect(result).rejects.toThrow("failed");
  expect(seen).toHaveLength(1);
});
