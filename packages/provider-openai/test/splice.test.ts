import { readdirSync } from "node:fs";
import type { CompletionEvent } from "@tollgate/core/provider";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fixture } from "./fixture.ts";
import { cutAt, readBytes } from "./read-bytes.ts";

const streams = readdirSync(new URL("fixtures", import.meta.url)).filter((name) =>
  name.endsWith(".sse"),
);

/** The events if every frame is parsed: bytes arrive one at a time, so no frame arrives whole. */
function parsed(bytes: Uint8Array): readonly CompletionEvent[] {
  return readBytes(Array.from(bytes, (_, at) => bytes.subarray(at, at + 1)));
}

const stop = 'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n';

describe("a stream whose frames are spliced", () => {
  it.each(streams)("yields the same events for %s as parsing each frame", (name) => {
    const bytes = Buffer.from(fixture(name));
    const expected = parsed(bytes);
    expect(readBytes([bytes])).toEqual(expected);
    for (let at = 0; at <= bytes.length; at++)
      expect(readBytes(cutAt(bytes, [at]))).toEqual(expected);
  });

  it.each(streams)("yields the same events however %s is cut", (name) => {
    const bytes = Buffer.from(fixture(name));
    const expected = parsed(bytes);
    const places = fc.array(fc.nat(bytes.length), { maxLength: 12 });
    fc.assert(
      fc.property(places, (cuts) => {
        expect(readBytes(cutAt(bytes, cuts))).toEqual(expected);
      }),
      { numRuns: 50 },
    );
  });

  it("yields the same events whatever text its frames contain", () => {
    const text = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.constantFrom("", '"', "\\", "\n\n", '"}}]}\n\n', "x", "x?", "\ud83d", "content", "null"),
    );
    const members = fc.record(
      { content: text, reasoning_content: text, reasoning: text, refusal: text, other: text },
      { requiredKeys: [] },
    );
    const frame = fc
      .record({
        outer: fc.record({ content: text, delta: members, id: text }, { requiredKeys: [] }),
        delta: members,
        index: fc.constantFrom(0, 1, null, undefined),
        isEscaped: fc.boolean(),
        repeats: fc.integer({ min: 1, max: 4 }),
      })
      .map(({ outer, delta, index, isEscaped, repeats }) => {
        const chunk = JSON.stringify({ ...outer, choices: [{ index, delta }] });
        const written = isEscaped ? chunk.replaceAll(/[^ -~]/g, escaped) : chunk;
        return `data: ${written}\n\n`.repeat(repeats);
      });
    fc.assert(
      fc.property(fc.array(frame, { maxLength: 12 }), (frames) => {
        const bytes = Buffer.from(`${frames.join("")}${stop}`);
        expect(readBytes([bytes])).toEqual(parsed(bytes));
      }),
      { numRuns: 300 },
    );
  });

  it.each([
    [
      "a member of the same name before it",
      '{"content":"a","choices":[{"delta":{"content":"a"}}]}',
    ],
    ["the same member twice", '{"choices":[{"delta":{"content":"a","content":"a"}}]}'],
    [
      "the same text in another member",
      '{"choices":[{"delta":{"content":"a","reasoning":null,"x":"a"}}]}',
    ],
    [
      "a text that is also between two strings",
      '{"content":"x","y":"z","choices":[{"delta":{"content":","}}]}',
      ",",
    ],
    ["a text that is also a key", '{"choices":[{"delta":{"content":":","x":"y"}}]}', ":"],
    [
      "the fragments of a call without a name",
      '{"choices":[{"delta":{"content":"a","tool_calls":[{"index":0,"function":{"arguments":"1"}}]}}]}',
      "a",
      [
        '{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"1","function":{"name":"f","arguments":""}}]}}]}',
      ],
    ],
    [
      "the fragments of a function call without a name",
      '{"choices":[{"delta":{"content":"a","function_call":{"arguments":"1"}}}]}',
      "a",
      ['{"choices":[{"delta":{"function_call":{"name":"f","arguments":""}}}]}'],
    ],
    [
      "a service tier that changes and comes back",
      '{"service_tier":"default","choices":[{"delta":{"content":"a"}}]}',
      "a",
      [
        '{"service_tier":"priority","choices":[{"delta":{"content":"b"}}]}',
        '{"service_tier":"default","choices":[{"delta":{"content":"c"}}]}',
      ],
    ],
  ])("is not misled by %s", (_, chunk, text = "a", further: readonly string[] = []) => {
    const places = [...chunk.matchAll(RegExp(`"${text}"`, "g"))].map(({ index }) => index + 1);
    const changed = places.map((at) => `${chunk.slice(0, at)}b${chunk.slice(at + 1)}`);
    const chunks = [chunk, chunk, ...changed.filter(isJson), chunk, ...further];
    const bytes = Buffer.from(chunks.map((each) => `data: ${each}\n\n`).join("") + stop);
    expect(readBytes([bytes])).toEqual(parsed(bytes));
  });

  it("yields the same events whatever lines its frames contain", () => {
    const chunk = (text: string, members = {}): string =>
      JSON.stringify({ choices: [{ delta: { content: text } }], ...members });
    const lines = fc.constantFrom(
      `data: ${chunk("a")}`,
      `data: ${chunk("b")}`,
      `data:${chunk("c")}`,
      `data: ${chunk("d", { service_tier: "default" })}`,
      `data: ${chunk("e", { service_tier: "default" })}`,
      `data: ${chunk("f", { service_tier: "flex" })}`,
      "data: ",
      "data",
      "id: 1",
      "event: x",
      ": a comment",
      "\ufeff",
      "nothing",
    );
    const ends = fc.constantFrom(
      "\n\n",
      "\n\n",
      "\n\n",
      "\n",
      "\r",
      "\r\n",
      "\r\n\r\n",
      "\r\n\n",
      "\n\n\n",
    );
    const line = fc.tuple(lines, ends, fc.integer({ min: 1, max: 3 }));
    fc.assert(
      fc.property(
        fc.array(line, { maxLength: 16 }),
        fc.array(fc.nat(1_000), { maxLength: 3 }),
        (written, cuts) => {
          const text = written.map(([each, end, times]) => (each + end).repeat(times)).join("");
          const bytes = Buffer.from(`${text}\n\n${stop}`);
          expect(outcome(() => readBytes(cutAt(bytes, cuts)))).toEqual(
            outcome(() => parsed(bytes)),
          );
        },
      ),
      { numRuns: 1_000 },
    );
  });
});

describe("a frame that arrives in two pieces", () => {
  it("is an error if its first line is one, even if the rest looks like text", () => {
    const text = 'data: {"choices":[{"delta":{"content":"a"}}]}\n\n';
    const pieces = [text + text, "event: error\n", text].map((piece) => Buffer.from(piece));
    expect(() => readBytes(pieces)).toThrow("reported an error");
  });
});

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** The events, or the failure. */
function outcome(read: () => unknown): unknown {
  try {
    return read();
  } catch (thrown) {
    return String(thrown);
  }
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
