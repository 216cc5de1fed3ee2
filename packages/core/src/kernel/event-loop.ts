/** Lets other work of the process run. Without it, a long computation would block the event loop. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Runs work once the event loop has read every socket that is ready. */
export type AfterReads = (work: () => void) => void;

/** Works that run in one turn of the event loop. */
const worksPerTurn = 64;

/**
 * Creates an `AfterReads` whose works run one directly after the other, up to 64 in a turn of the event loop. Reading and
 * governing each request in turns would keep replacing the code of both in the processor's caches, and cost a third more.
 * Work that throws doesn't stop the rest; its error is uncaught.
 */
export function createAfterReads(): AfterReads {
  const waiting: (() => void)[] = [];
  const runSome = (): void => {
    const works = waiting.splice(0, worksPerTurn);
    if (waiting.length > 0) setImmediate(runSome);
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
    if (waiting.push(work) === 1) setImmediate(runSome);
  };
}

const largeBytes = 262_144;

/** Whether this many bytes or characters take long enough to yield to the event loop afterwards. */
export function isLarge(size: number): boolean {
  return size >= largeBytes;
}
