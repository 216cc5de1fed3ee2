/** Bytes of one value of a transcript chain. */
const valueBytes = 32;

/** The number of messages a chain covers. Not an integer if the bytes are not a chain. */
export function chainLength(chain: Uint8Array): number {
  return chain.length / valueBytes;
}

/** The values from one position to another, or to the end. */
export function chainSlice(chain: Uint8Array, from: number, to?: number): Uint8Array {
  return chain.subarray(from * valueBytes, to === undefined ? undefined : to * valueBytes);
}

/** The value after a number of messages, in hex, which is the form of a Session's head. Empty for no messages. */
export function chainHead(chain: Uint8Array, length: number = chainLength(chain)): string {
  if (length === 0) return "";
  const start = chain.byteOffset + (length - 1) * valueBytes;
  return Buffer.from(chain.buffer, start, valueBytes).toString("hex");
}

/** The number of messages two chains share from the start. */
export function commonPrefix(a: Uint8Array, b: Uint8Array): number {
  const max = Math.min(chainLength(a), chainLength(b));
  let length = 0;
  while (length < max && isSameValue(a, b, length)) length++;
  return length;
}

function isSameValue(a: Uint8Array, b: Uint8Array, at: number): boolean {
  return Buffer.compare(chainSlice(a, at, at + 1), chainSlice(b, at, at + 1)) === 0;
}
