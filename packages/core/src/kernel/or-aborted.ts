/**
 * What `run` resolves with, or a rejection with the signal's reason as soon as it aborts, whether `run` notices or not.
 * It is not run when the signal is aborted already.
 */
export async function orAborted<Value>(
  signal: AbortSignal,
  run: () => PromiseLike<Value>,
): Promise<Value> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const onAbort = (): void => aborted.reject(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([run(), aborted.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
