/** Bytes of one value of a transcript chain. */
const valueBytes = 32;

/** How many messages a chain covers. */
export function chainLength(chain: Uint8Array): number {
  return chain.length / valueBytes;
}

/** The values from one position to another, or to the end. */
export function chainSlice(chain: Uint8Array, from: number, to?: number): Uint8Array {
  return chain.subarray(from * valueBytes, to === undefined ? undefined : to * valueBytes);
}

/** The last value; empty for no messages. */
export function chainHead(chain: Uint8Array): Uint8Array {
  return chain.subarray(Math.max(0, chain.length - valueBytes));
}

/** How many messages two chains share from the start. */
export function commonPrefix(a: Uint8Array, b: Uint8Array): number {
  const most = Math.min(chainLength(a), chainLength(b));
  let length = 0;
  while (length < most && sameValue(a, b, length)) length++;
  return length;
}

function sameValue(a: Uint8Array, b: Uint8Array, at: number): boolean {
  return Buffer.compare(chainSlice(a, at, at + 1), chainSlice(b, at, at + 1)) === 0;
}
