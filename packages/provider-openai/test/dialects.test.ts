import type { CompletionEvent } from "@tollgate/core/provider";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fixture } from "./fixture.ts";
import { cutAt, joined, readBytes } from "./read-bytes.ts";

const started = (providerRequestId: string): CompletionEvent => ({
  type: "answer-started",
  providerRequestId,
  providerModel: "m-1",
});
const text = (said: string): CompletionEvent => ({ type: "text-delta", text: said });
const reasoning = (text: string, field: "reasoning" | "reasoning_content"): CompletionEvent => ({
  type: "reasoning-delta",
  text,
  field,
});
const detail = (text: string): CompletionEvent => ({
  type: "state",
  fields: { reasoning_details: [{ type: "reasoning.text", text, format: "unknown", index: 0 }] },
});
const stop: CompletionEvent = { type: "finish", reason: "stop" };
const small: CompletionEvent = { type: "usage", usage: { promptTokens: 9, completionTokens: 1 } };

const dialects: Readonly<Record<string, readonly CompletionEvent[]>> = {
  "standard.sse": [
    started("chatcmpl-7f3"),
    text("Grüße, 世界 🌍!"),
    {
      type: "usage",
      usage: {
        promptTokens: 12,
        completionTokens: 5,
        cachedTokens: 4,
        reasoningTokens: 0,
        audioInputTokens: 0,
        audioOutputTokens: 0,
      },
    },
    stop,
  ],
  "tool-calls.sse": [
    started("chatcmpl-7f3"),
    { type: "tool-call-started", index: 0, id: "call_a1", name: "get_weather" },
    { type: "tool-call-delta", index: 0, arguments: '{"city":"Zürich"}' },
    { type: "usage", usage: { promptTokens: 12, completionTokens: 5 } },
    { type: "finish", reason: "tool_calls" },
  ],
  "reasoning-content.sse": [
    started("chatcmpl-7f3"),
    reasoning("Two and two.", "reasoning_content"),
    text("Four"),
    {
      type: "usage",
      usage: { promptTokens: 9, completionTokens: 7, cachedTokens: 0, reasoningTokens: 5 },
    },
    stop,
  ],
  "reasoning.sse": [
    started("gen-1790-x"),
    reasoning("Two and ", "reasoning"),
    detail("Two and "),
    reasoning("two.", "reasoning"),
    detail("two."),
    text("Four"),
    {
      type: "usage",
      usage: {
        promptTokens: 9,
        completionTokens: 7,
        cachedTokens: 0,
        reasoningTokens: 5,
        costNanoUsd: 141_750,
      },
    },
    stop,
  ],
  "usage-on-finish.sse": [started("chatcmpl-7f3"), text("Four"), small, stop],
  "no-usage.sse": [started("chatcmpl-7f3"), text("Four"), stop],
  "no-done.sse": [started("chatcmpl-7f3"), text("Four"), small, stop],
  "signed-tool-call.sse": [
    started("chatcmpl-7f3"),
    { type: "tool-call-started", index: 0, id: "call_a", name: "add" },
    {
      type: "state",
      index: 0,
      fields: { extra_content: { google: { thought_signature: "c2lnbmF0dXJl" } } },
    },
    { type: "tool-call-delta", index: 0, arguments: '{"a":1}' },
    { type: "usage", usage: { promptTokens: 9, completionTokens: 1 } },
    { type: "finish", reason: "tool_calls" },
  ],
  "tool-without-index.sse": [
    started("chatcmpl-7f3"),
    { type: "tool-call-started", index: 0, id: "call_a", name: "add" },
    { type: "tool-call-delta", index: 0, arguments: '{"a":1}' },
    { type: "tool-call-started", index: 1, id: "call_b", name: "add" },
    { type: "tool-call-delta", index: 1, arguments: '{"a":2}' },
    { type: "usage", usage: { promptTokens: 9, completionTokens: 1 } },
    { type: "finish", reason: "tool_calls" },
  ],
  "filtered-prompt.sse": [
    {
      type: "answer-started",
      providerRequestId: "chatcmpl-7f3",
      providerModel: "m-1",
      systemFingerprint: "fp_7",
    },
    text("Four"),
    small,
    stop,
  ],
  "crlf.sse": [started("chatcmpl-7f3"), text("Four 🌍"), small, stop],
};

describe("dialects of upstreams", () => {
  for (const [name, expected] of Object.entries(dialects)) {
    const bytes = Buffer.from(fixture(name));

    it(`reads ${name}`, () => {
      expect(joined(readBytes([bytes]))).toEqual(expected);
    });

    it(`reads ${name} alike wherever its bytes are split (W1, F10, S24)`, () => {
      const whole = readBytes([bytes]);
      for (let at = 0; at <= bytes.length; at++)
        expect(readBytes(cutAt(bytes, [at])), `cut at ${at}`).toEqual(whole);
      expect(readBytes(cutAt(bytes, [...bytes.keys()]))).toEqual(whole);
    });
  }
});

interface Delta {
  readonly kind: "content" | "reasoning" | "reasoning_content" | "refusal";
  readonly said: string;
}

const deltas = fc.array(
  fc.record<Delta>({
    kind: fc.constantFrom("content", "reasoning", "reasoning_content", "refusal"),
    said: fc.string({ unit: "binary", maxLength: 12 }),
  }),
  { maxLength: 12 },
);
const dialect = fc.record({
  newline: fc.constantFrom("\n", "\r\n"),
  space: fc.constantFrom("", " "),
  between: fc.constantFrom("", ": ping", "event: message", "retry: 5", "id: 7", "other"),
  mark: fc.constantFrom("", "\ufeff"),
  pretty: fc.boolean(),
  done: fc.boolean(),
  usageOn: fc.constantFrom("finish", "own-chunk", "nowhere"),
});

describe("a stream of any dialect", () => {
  it("yields the content of its deltas, however its bytes are split (W1, S24)", () => {
    const anywhere = fc.array(fc.nat({ max: 4_000 }), { maxLength: 20 });
    fc.assert(
      fc.property(deltas, dialect, anywhere, (said, shape, places) => {
        const bytes = Buffer.from(streamOf(said, shape));
        const events = readBytes(
          cutAt(
            bytes,
            places.filter((at) => at < bytes.length),
          ),
        );
        for (const [type, kinds] of [
          ["text-delta", ["content"]],
          ["reasoning-delta", ["reasoning", "reasoning_content"]],
          ["refusal-delta", ["refusal"]],
        ] as const)
          expect(textOf(events, type)).toBe(
            said
              .filter(({ kind }) => kinds.some((one) => one === kind))
              .map((one) => one.said)
              .join(""),
          );
        expect(events.at(-1)).toEqual({ type: "finish", reason: "length" });
        expect(events.some(({ type }) => type === "usage")).toBe(shape.usageOn !== "nowhere");
      }),
      { numRuns: 300 },
    );
  });
});

type Dialect = typeof dialect extends fc.Arbitrary<infer Shape> ? Shape : never;

function streamOf(said: readonly Delta[], shape: Dialect): string {
  const usage = { prompt_tokens: 1, completion_tokens: 2 };
  const chunks: readonly object[] = [
    ...said.map((delta) => ({ choices: [{ index: 0, delta: { [delta.kind]: delta.said } }] })),
    {
      choices: [{ index: 0, delta: {}, finish_reason: "length" }],
      ...(shape.usageOn === "finish" ? { usage } : {}),
    },
    ...(shape.usageOn === "own-chunk" ? [{ choices: [], usage }] : []),
  ];
  const field = (line: string): string => `data:${shape.space}${line}`;
  const events = chunks.map((chunk) =>
    // Several data lines are one value: JSON may be broken between its tokens.
    JSON.stringify(chunk, null, shape.pretty ? 1 : 0)
      .split("\n")
      .map(field),
  );
  if (shape.done) events.push([field("[DONE]")]);
  const lines = events.flatMap((event) =>
    [shape.between, ...event, ""].filter((line, at) => at > 0 || line !== ""),
  );
  return shape.mark + lines.map((line) => line + shape.newline).join("");
}

function textOf(events: readonly CompletionEvent[], type: CompletionEvent["type"]): string {
  return events.map((event) => (event.type === type && "text" in event ? event.text : "")).join("");
}
