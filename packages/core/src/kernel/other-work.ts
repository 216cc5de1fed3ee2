/** Lets what else waits for the process run: long reads that never leave the process would hold it up. */
export function otherWork(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

const largeBytes = 262_144;

/** The same after work on so many bytes or characters; at once where they are few. */
export async function otherWorkAfter(size: number): Promise<void> {
  if (size >= largeBytes) await otherWork();
}
