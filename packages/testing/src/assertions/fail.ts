import { AssertionError } from "node:assert";

/** Fails a test, in any runner: they all know this error, and show the two values beside its message. */
export function fail(
  message: string,
  values: { actual?: unknown; expected?: unknown } = {},
): never {
  throw new AssertionError({ message, ...values, stackStartFn: fail });
}
