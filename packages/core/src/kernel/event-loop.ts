/** Lets what else waits for the process run: long reads that never leave the process would hold it up. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

const largeBytes = 262_144;

/** Whether work on so many bytes or characters is long enough to let other work run after it. */
export function isLarge(size: number): boolean {
  return size >= largeBytes;
}
