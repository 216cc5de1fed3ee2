import { expect, it, vi } from "vitest";
import { addChunk } from "./byte-chunks.ts";

it("keeps every byte of a body that arrives byte by byte, in few chunks", () => {
  const chunks: Uint8Array[] = [];
  const body = Buffer.from(Array.from({ length: 100_001 }, (_, at) => at % 251));
  for (const byte of body) addChunk(chunks, Uint8Array.of(byte));
  expect(chunks.length).toBeLessThan(30);
  expect(Buffer.concat(chunks).equals(body)).toBe(true);
});

it("copies little of a body whose chunks get ever smaller", () => {
  const chunks: Uint8Array[] = [];
  const bytes = (2_800 * 2_801) / 2;
  const concat = vi.spyOn(Buffer, "concat");
  for (let size = 2_800; size > 0; size--) addChunk(chunks, new Uint8Array(size));
  addChunk(chunks, new Uint8Array(2));
  const copied = concat.mock.results.reduce((sum, { value }) => sum + value.length, 0);
  concat.mockRestore();
  expect(Buffer.concat(chunks)).toHaveLength(bytes + 2);
  expect(copied).toBeLessThan(15 * bytes);
});

it("keeps large chunks as they came, and drops empty ones", () => {
  const chunks: Uint8Array[] = [];
  const large = new Uint8Array(65_536);
  for (const chunk of [large, new Uint8Array(), large, Uint8Array.of(1)]) addChunk(chunks, chunk);
  expect(chunks.map((chunk) => chunk.length)).toEqual([65_536, 65_536, 1]);
  expect(chunks[0]).toBe(large);
});
