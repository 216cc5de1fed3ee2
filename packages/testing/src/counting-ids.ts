import type { IdSource } from "@tollgate/core";

/**
 * Predictable ids: ascending UUIDs, and bytes derived from a counter, the same in every run. Sources with different
 * `series` (0 to 65,535) never return the same id, so several gateways can share a store.
 */
export function countingIds(series = 0): IdSource {
  let uuids = 0;
  let draws = 0;
  const group = series.toString(16).padStart(4, "0");
  return {
    uuid: () => `00000000-${group}-7000-8000-${(++uuids).toString(16).padStart(12, "0")}`,
    bytes(length) {
      const words = new Uint32Array(Math.max(2, Math.ceil(length / 4)));
      // No two sources and draws share their first 8 bytes: the first word tells the draw, and both tell the series.
      let word = scrambled(Math.imul(++draws, 0x9e3779b1));
      words[0] = word;
      word = scrambled(word ^ (series + 1));
      words[1] = word;
      for (let at = 2; at < words.length; at++) {
        word = scrambled(word + at);
        words[at] = word;
      }
      return new Uint8Array(words.buffer, 0, length);
    },
  };
}

/** Spreads a number evenly over 32 bits (the finalizer of MurmurHash3). Every result has one origin. */
function scrambled(number: number): number {
  let word = number;
  word = Math.imul(word ^ (word >>> 16), 0x85ebca6b);
  word = Math.imul(word ^ (word >>> 13), 0xc2b2ae35);
  return (word ^ (word >>> 16)) >>> 0;
}
