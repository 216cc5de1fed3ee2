/**
 * What a source gives until the signal aborts: then the reason is thrown at once, whether the source notices or not.
 * A source that was not read to its end is told so, and not waited for: one that hangs must hold nobody up.
 */
export async function* untilAborted<Item>(
  source: AsyncIterable<Item>,
  signal: AbortSignal,
): AsyncGenerator<Item, void, undefined> {
  const iterator = source[Symbol.asyncIterator]();
  let stop = (): void => {};
  const onAbort = (): void => stop();
  signal.addEventListener("abort", onAbort, { once: true });
  let isEnded = false;
  try {
    for (;;) {
      signal.throwIfAborted();
      const { done, value } = await new Promise<IteratorResult<Item>>((resolve, reject) => {
        stop = () => reject(signal.reason);
        iterator.next().then(resolve, reject);
      });
      if (done) {
        isEnded = true;
        return;
      }
      yield value;
    }
  } finally {
    signal.removeEventListener("abort", onAbort);
    if (!isEnded) iterator.return?.().catch(() => {});
  }
}
