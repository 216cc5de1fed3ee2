/** What `run` resolves with, or the signal's reason as soon as it aborts. */
export async function untilAborted<Value>(
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
