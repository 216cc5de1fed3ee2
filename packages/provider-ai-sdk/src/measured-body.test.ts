import type { ProviderCall, ProviderError } from "@tollgate/core/provider";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { measuredBody } from "./measured-body.ts";

const manyBytes = { eventBytes: 4_000_000, totalBytes: 4_000_000, bodyBytes: 4_000_000 };

/** The bytes that pass, and the failure. */
async function through(
  contentType: string,
  chunks: readonly Uint8Array[],
  bounds: Partial<ProviderCall["limits"]> & { readonly stream?: boolean } = {},
) {
  const failures: ProviderError[] = [];
  const { stream = true, ...limits } = { ...manyBytes, ...bounds };
  const body = ReadableStream.from(chunks).pipeThrough(
    measuredBody({ contentType, stream }, limits, (failure) => failures.push(failure)),
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
    ["text/event-stream;cr", (size: number) => Buffer.from(`${"x".repeat(size - 2)}\r\r`)],
    ["application/x-ndjson", (size: number) => Buffer.from(`${"x".repeat(size - 1)}\n`)],
    ["application/vnd.amazon.eventstream", frame],
  ] as const)("measures each event of %s wherever its bytes are split", async (type, eventOf) => {
    const sizes = fc.array(fc.integer({ min: 16, max: 40 }), { minLength: 1, maxLength: 10 });
    await fc.assert(
      fc.asyncProperty(sizes, fc.integer({ min: 1, max: 50 }), async (events, size) => {
        const bytes = Buffer.concat(events.map(eventOf));
        const largest = Math.max(...events);
        const fits = await through(type, inPieces(bytes, size), { eventBytes: largest });
        expect(fits).toEqual({ bytes, reason: null });
        const { reason } = await through(type, inPieces(bytes, size), {
          eventBytes: largest - 1,
        });
        expect(reason).toBe("event_too_large");
      }),
      { numRuns: 40 },
    );
  });

  it("ends an event that has no end", async () => {
    const endless = inPieces(Buffer.alloc(200, "x"), 10);
    expect(await through("text/event-stream", endless, { eventBytes: 100 })).toEqual({
      bytes: null,
      reason: "event_too_large",
    });
  });

  it.each([
    ["text/event-stream", true, { totalBytes: 1_000 }],
    ["application/json", true, { bodyBytes: 1_000 }],
    ["application/json", false, { bodyBytes: 1_000 }],
    ["text/event-stream", false, { bodyBytes: 1_000 }],
    ["application/json", false, { totalBytes: 1_000 }],
  ] as const)(
    "limits the size of an answer of type %s (stream: %s)",
    async (type, stream, most) => {
      const chunks = inPieces(Buffer.alloc(1_001, "x"), 100);
      const beyond = await through(type, chunks, { stream, ...most });
      expect(beyond).toEqual({ bytes: null, reason: "answer_too_large" });
      const bytes = Buffer.concat(chunks.slice(0, 10));
      const within = await through(type, chunks.slice(0, 10), { stream, ...most });
      expect(within).toEqual({ bytes, reason: null });
    },
  );

  const lists = (count: number): string => `[${"[],".repeat(count)}1]`;
  const framed = (text: string): Buffer => {
    // The checksum before the headers has a byte that is a quote.
    const bytes = Buffer.concat([Buffer.alloc(8), Buffer.from(`"xxxhead${text}xxxx`)]);
    bytes.writeUInt32BE(bytes.length);
    bytes.writeUInt32BE(4, 4);
    return bytes;
  };
  const inEvent = (text: string) => Buffer.from(`: "\r\ndata: ${text}\r\n\r\n`);

  it.each([
    ["text/event-stream", true, inEvent],
    ["text/plain", true, inEvent],
    ["text/event-stream", true, (text: string) => Buffer.from(`: "\rdata: ${text}\r\r`)],
    ["text/event-stream", true, (text: string) => Buffer.from(`\uFEFFdata:${text}\n\n`)],
    [
      "text/event-stream",
      true,
      (text: string) => Buffer.from(`data: ${text.replaceAll("[],[],", "[],[],\ndata:")}\n\n`),
    ],
    ["application/x-ndjson", true, (text: string) => Buffer.from(`"\n${text}\n`)],
    ["application/vnd.amazon.eventstream", true, framed],
    ["application/json", true, Buffer.from],
    ["application/json", false, Buffer.from],
    ["text/event-stream", false, Buffer.from],
  ] as const)(
    "limits the number of values parsed at once: %s (stream: %s)",
    async (type, stream, of) => {
      const many = inPieces(of(lists(210_000)), 50_000);
      const beyond = await through(type, many, { stream });
      expect(beyond).toEqual({ bytes: null, reason: "too_many_values" });
      const fewer = of(lists(190_000));
      const within = await through(type, inPieces(fewer, 50_000), { stream });
      expect(within).toEqual({ bytes: fewer, reason: null });
    },
  );

  it("refuses events sent as application/json, because their values are not counted", async () => {
    const body = Buffer.from(`{\ndata: "\n\ndata: ${lists(210_000)}\n\n`);
    expect((await through("application/json", [body])).reason).toBe("invalid_answer");
  });
});
