/**
 * Returns the result of a host's function that must be synchronous. If it is async by mistake, its rejection doesn't end the
 * process.
 */
export function synchronous<Result>(result: Result): Result {
  if (result instanceof Promise) result.catch(() => {});
  return result;
}
