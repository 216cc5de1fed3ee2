import type { ProviderError } from "@tollgate/core/provider";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { measuredBody } from "./measured-body.ts";

/** What comes through of these chunks, and why not all of it. */
async function through(contentType: string, chunks: readonly Uint8Array[], eventBytes: number) {
  const failures: ProviderError[] = [];
  const limits = { eventBytes, totalBytes: 1_000 };
  const body = ReadableStream.from(chunks).pipeThrough(
    measuredBody(contentType, limits, (failure) => failures.push(failure)),
  );
  const bytes = await new Response(body).bytes().then(Buffer.from, () => null);
  return { bytes, reason: failures[0]?.reason ?? null };
}

const inPieces = (bytes: Buffer, size: number): readonly Buffer[] =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
    bytes.subarray(index * size, (index + 1) * size),
  );

const frame = (length: number): Buffer => {
  const bytes = Buffer.alloc(length, "x");
  bytes.writeUInt32BE(length);
  return bytes;
};

describe("a measured body", () => {
  it.each([
    [
      "text/event-stream; charset=utf-8",
      (size: number) => Buffer.from(`${"x".repeat(size - 2)}\n\n`),
    ],
    ["text/event-stream", (size: number) => Buffer.from(`${"x".repeat(size - 4)}\r\n\r\n`)],
    ["application/vnd.amazon.eventstream", frame],
  ] as const)("measures each event of %s wherever its bytes are split", async (type, eventOf) => {
    const sizes = fc.array(fc.integer({ min: 5, max: 40 }), { minLength: 1, maxLength: 10 });
    await fc.assert(
      fc.asyncProperty(sizes, fc.integer({ min: 1, max: 50 }), async (events, size) => {
        const bytes = Buffer.concat(events.map(eventOf));
        const largest = Math.max(...events);
        const fits = await through(type, inPieces(bytes, size), largest);
        expect(fits).toEqual({ bytes, reason: null });
        const { reason } = await through(type, inPieces(bytes, size), largest - 1);
        expect(reason).toBe("event_too_large");
      }),
      { numRuns: 40 },
    );
  });

  it("ends an event that has no end", async () => {
    const endless = inPieces(Buffer.alloc(200, "x"), 10);
    expect(await through("text/event-stream", endless, 100)).toEqual({
      bytes: null,
      reason: "event_too_large",
    });
  });

  it("bounds the whole of any answer", async () => {
    const chunks = inPieces(Buffer.alloc(1_001, "x"), 100);
    expect((await through("application/json", chunks, 10)).reason).toBe("answer_too_large");
    expect((await through("application/json", chunks.slice(0, 10), 10)).reason).toBeNull();
  });
});
