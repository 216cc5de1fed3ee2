/** A source being read: its items one by one, and word that no more of them are wanted. */
export interface Reading<Item> {
  next(): Promise<IteratorResult<Item, unknown>>;
  /** Tells the source, which is not waited for: one that hangs must hold nobody up. */
  stop(): void;
}

/** What a source gives until the signal aborts: then the reason is thrown at once, whether the source notices or not. */
export function untilAborted<Item>(
  source: AsyncIterable<Item>,
  signal: AbortSignal,
): Reading<Item> {
  const iterator = source[Symbol.asyncIterator]();
  let refuse = (_reason: unknown): void => {};
  const onAbort = (): void => refuse(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  return {
    next: () =>
      new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason);
        refuse = reject;
        iterator.next().then(resolve, reject);
      }),
    stop() {
      signal.removeEventListener("abort", onAbort);
      iterator.return?.().catch(() => {});
    },
  };
}
