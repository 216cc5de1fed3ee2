import { AssertionError } from "node:assert";

/** Fails a test in any test runner. Runners show the two values with the message. */
export function fail(
  message: string,
  values: { actual?: unknown; expected?: unknown } = {},
): never {
  throw new AssertionError({ message, ...values, stackStartFn: fail });
}
