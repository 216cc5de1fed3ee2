/** Lets what else waits for the process run: long reads that never leave the process would hold it up. */
export function otherWork(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
