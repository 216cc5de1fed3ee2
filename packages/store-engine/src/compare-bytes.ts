/** Compares texts by their bytes in UTF-8, as the databases do. */
export function compareBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
