const opening = 0x5b;
const closing = 0x5d;
const comma = Uint8Array.of(0x2c);
const whitespace: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d]);

/** One JSON array of the elements of several, in UTF-8, each element byte for byte unchanged. */
export function joinMessages(arrays: readonly Uint8Array[]): Uint8Array {
  const lists = arrays.map(elementsOf).filter((list) => !list.every(isWhitespace));
  const separated = lists.flatMap((list, place) => (place === 0 ? [list] : [comma, list]));
  return Buffer.concat([Uint8Array.of(opening), ...separated, Uint8Array.of(closing)]);
}

/** The text between an array's brackets. */
function elementsOf(array: Uint8Array): Uint8Array {
  const start = array.findIndex((byte) => !isWhitespace(byte));
  const end = array.findLastIndex((byte) => !isWhitespace(byte));
  if (end <= start || array[start] !== opening || array[end] !== closing)
    throw new TypeError("messages are not a JSON array");
  return array.subarray(start + 1, end);
}

function isWhitespace(byte: number): boolean {
  return whitespace.has(byte);
}
