/** Lets other work of the process run. Without it, a long computation would block the event loop. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

const largeBytes = 262_144;

/** Whether this many bytes or characters take long enough to yield to the event loop afterwards. */
export function isLarge(size: number): boolean {
  return size >= largeBytes;
}
