/** Lets other work of the process run. Without it, a long computation would block the event loop. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Runs work once the event loop has read every socket that is ready. */
export type AfterReads = (work: () => void) => void;

/**
 * Creates an `AfterReads` whose works run one directly after the other. Reading and governing each request in turns would
 * keep replacing the code of both in the processor's caches, and cost a third more. Work that throws doesn't stop the rest;
 * its error is uncaught.
 */
export function createAfterReads(): AfterReads {
  let waiting: (() => void)[] = [];
  const runAll = (): void => {
    const works = waiting;
    waiting = [];
    for (const work of works) {
      try {
        work();
      } catch (thrown) {
        queueMicrotask(() => {
          throw thrown;
        });
      }
    }
  };
  return (work) => {
    if (waiting.length === 0) setImmediate(runAll);
    waiting.push(work);
  };
}

const largeBytes = 262_144;

/** Whether this many bytes or characters take long enough to yield to the event loop afterwards. */
export function isLarge(size: number): boolean {
  return size >= largeBytes;
}
