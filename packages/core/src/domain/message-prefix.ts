const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const openers: ReadonlySet<number> = new Set([0x5b, 0x7b]);
const closers: ReadonlySet<number> = new Set([0x5d, 0x7d]);

/**
 * The first `count` messages of a JSON array in UTF-8, byte for byte as they stand: what a branch shares of a part it
 * diverged in. All of the array when it holds no more.
 */
export function messagePrefix(content: Uint8Array, count: number): Uint8Array {
  const end = count === 0 ? content.indexOf(0x5b) + 1 : endOfMessage(content, count);
  if (end === null) return content;
  return Buffer.concat([content.subarray(0, end), Uint8Array.of(0x5d)]);
}

/** Where message number `count` ends, or null when the array ends before another begins. */
function endOfMessage(content: Uint8Array, count: number): number | null {
  let depth = 0;
  let seen = 0;
  for (let at = 0; at < content.length; at++) {
    const byte = content[at] ?? 0;
    if (byte === quote) at = endOfString(content, at);
    else if (openers.has(byte)) depth++;
    else if (closers.has(byte)) depth--;
    else if (byte === comma && depth === 1 && ++seen === count) return at;
  }
  return null;
}

/** The closing quote of the string that opens at `start`. */
function endOfString(content: Uint8Array, start: number): number {
  let at = start + 1;
  while (at < content.length && content[at] !== quote) at += content[at] === backslash ? 2 : 1;
  return at;
}
