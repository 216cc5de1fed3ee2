import { type Clock, systemClock } from "./clock.ts";

/** Once resumed work has taken this long in one turn of the event loop, the rest waits. Milliseconds. */
const maxTurnMs = 20;

/**
 * Creates a function that lets other work of the process run. Work that yields resumes in the next turn of the event loop,
 * in order. Once a turn has taken 20 ms, the rest waits for the next one, so many long computations block the event loop no
 * longer than one.
 */
export function createYield(clock: Pick<Clock, "monotonic"> = systemClock): () => Promise<void> {
  const waiting: (() => void)[] = [];
  let hasNextTurn = false;
  let startedAt = 0;
  const startTurn = (): void => {
    hasNextTurn = false;
    startedAt = clock.monotonic();
  };
  const goOn = (): void => {
    if (clock.monotonic() - startedAt < maxTurnMs) waiting.shift()?.();
    else schedule();
  };
  const schedule = (): void => {
    // Directly before the first work of its turn, so that each turn goes on with at least one.
    if (!hasNextTurn) setImmediate(startTurn);
    hasNextTurn = true;
    setImmediate(goOn);
  };
  return () =>
    new Promise((resolve) => {
      waiting.push(resolve);
      schedule();
    });
}

/** All gateways of a process share its event loop. */
const yieldInProcess = createYield();

/** Lets other work of the process run. Without it, a long computation would block the event loop. */
export function yieldToEventLoop(): Promise<void> {
  return yieldInProcess();
}

/** Runs work once the event loop has read every socket that is ready. */
export type AfterReads = (work: () => void) => void;

/** Works that run in one turn of the event loop. */
const worksPerTurn = 64;

/** Works that run at once, before the next one waits: a caller that never pauses must leave turns to others. */
const worksAtOnce = 8;

/**
 * Creates an `AfterReads` that runs its work back to back, up to 64 pieces in a turn of the event loop. Alternating between
 * reading and governing would evict the code of both from the processor's caches, and cost a third more. While `isAlone`
 * says that no other request is in flight, work runs at once, except every ninth piece. Work that throws doesn't stop the
 * rest; its error is uncaught.
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
