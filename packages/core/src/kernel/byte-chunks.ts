/** Chunks of at least this many bytes are kept as they came. */
const smallChunk = 16_384;

/**
 * Adds a chunk of a body to the earlier ones. Joins small ones, so that a body takes about as much memory as its bytes
 * however many pieces it comes in.
 */
export function addChunk(chunks: Uint8Array[], chunk: Uint8Array): void {
  if (chunk.length === 0) return;
  let [from, size] = [chunks.length, chunk.length];
  for (let last = chunks[from - 1]; last !== undefined; last = chunks[from - 1]) {
    if (last.length > size || last.length >= smallChunk) break;
    size += last.length;
    from--;
  }
  // A chunk that is joined becomes part of one at least twice as large, so a byte is copied 15 times at most.
  const small = chunks.splice(from);
  chunks.push(small.length === 0 ? chunk : Buffer.concat([...small, chunk], size));
}
