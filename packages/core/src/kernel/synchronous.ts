/**
 * The result of a host's function that must be synchronous. If the function is async by mistake, its rejection doesn't end
 * the process.
 */
export function synchronous<Result>(result: Result): Result {
  if (result instanceof Promise) result.catch(() => {});
  return result;
}
