import type { Clock } from "../kernel/clock.ts";

/** What a call answers within a bound of milliseconds; rejects when it takes longer, and leaves it behind. */
export async function inTime<Answer>(
  clock: Clock,
  milliseconds: number,
  call: () => Answer | Promise<Answer>,
): Promise<Answer> {
  const late = Promise.withResolvers<never>();
  const cancel = clock.after(milliseconds, () => late.reject(new Error("it took too long")));
  try {
    return await Promise.race([call(), late.promise]);
  } finally {
    cancel();
  }
}
