/** Lets other work of the process run. Without it, a long computation would block the event loop. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Runs work once the event loop has read every socket that is ready. */
export type AfterReads = (work: () => void) => void;

/** Works that run in one turn of the event loop. */
const worksPerTurn = 64;

/** Works that run at once, before the next one waits: a caller that never pauses must leave turns to others. */
const worksAtOnce = 8;

/**
 * Creates an `AfterReads` whose works run one directly after the other, up to 64 in a turn of the event loop. Reading and
 * governing each request in turns would keep replacing the code of both in the processor's caches, and cost a third more.
 * While `isAlone` says that no other request is in flight, work has nothing to wait for: it runs at once, except every
 * ninth. Work that throws doesn't stop the rest; its error is uncaught.
 */
export function createAfterReads(isAlone: () => boolean = () => false): AfterReads {
  const waiting: (() => void)[] = [];
  let atOnce = 0;
  const runSome = (): void => {
    const works = waiting.splice(0, worksPerTurn);
    if (waiting.length > 0) setImmediate(runSome);
    atOnce = 0;
    for (const work of works) run(work);
  };
  return (work) => {
    if (waiting.length === 0 && atOnce < worksAtOnce && isAlone()) {
      atOnce++;
      run(work);
    } else if (waiting.push(work) === 1) setImmediate(runSome);
  };
}

function run(work: () => void): void {
  try {
    work();
  } catch (thrown) {
    queueMicrotask(() => {
      throw thrown;
    });
  }
}

const largeBytes = 262_144;

/** Whether this many bytes or characters take long enough to yield to the event loop afterwards. */
export function isLarge(size: number): boolean {
  return size >= largeBytes;
}
