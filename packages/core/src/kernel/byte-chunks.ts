/** Chunks of at least this many bytes are kept as they came. */
const smallChunk = 16_384;

/**
 * Adds a chunk of a body to the earlier ones. Joins small ones, so that a body takes about as much memory as its bytes
 * however many pieces it comes in.
 */
export function addChunk(chunks: Uint8Array[], chunk: Uint8Array): void {
  if (chunk.length === 0) return;
  let joined = chunk;
  // Each join at least doubles a chunk, so a byte is copied 14 times at most.
  for (let last = chunks.at(-1); last !== undefined; last = chunks.at(-1)) {
    if (last.length > joined.length || last.length >= smallChunk) break;
    joined = Buffer.concat([last, joined]);
    chunks.pop();
  }
  chunks.push(joined);
}
