import { expect, it } from "vitest";
import { addChunk } from "./byte-chunks.ts";

it("keeps every byte of a body that arrives byte by byte, in few chunks", () => {
  const chunks: Uint8Array[] = [];
  const body = Buffer.from(Array.from({ length: 100_001 }, (_, at) => at % 251));
  for (const byte of body) addChunk(chunks, Uint8Array.of(byte));
  expect(chunks.length).toBeLessThan(30);
  expect(Buffer.concat(chunks).equals(body)).toBe(true);
});

it("keeps large chunks as they came, and drops empty ones", () => {
  const chunks: Uint8Array[] = [];
  const large = new Uint8Array(65_536);
  for (const chunk of [large, new Uint8Array(), large, Uint8Array.of(1)]) addChunk(chunks, chunk);
  expect(chunks.map((chunk) => chunk.length)).toEqual([65_536, 65_536, 1]);
  expect(chunks[0]).toBe(large);
});
