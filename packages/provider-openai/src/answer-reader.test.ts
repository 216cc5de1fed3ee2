import type { CompletionEvent, Json } from "@tollgate/core/provider";
import { expect, it } from "vitest";
import { createAnswerReader, frameText } from "./answer-reader.ts";

/** The events of these chunks, and how the answer ends. */
function read(...chunks: readonly unknown[]) {
  const reader = createAnswerReader({ seed: "seed", secrets: [] });
  const events: CompletionEvent[] = [];
  for (const chunk of chunks) {
    const text = JSON.stringify(chunk);
    const json: Json = JSON.parse(text);
    reader.add(json, events, text);
  }
  return { reader, events };
}

const choice = (delta: object, more: object = {}) => ({ choices: [{ index: 0, delta, ...more }] });

it.each([
  ["stop", "stop"],
  ["length", "length"],
  ["tool_calls", "tool_calls"],
  ["content_filter", "content_filter"],
  ["function_call", "tool_calls"],
  ["eos", "stop"],
  ["eos_token", "stop"],
  ["end_turn", "stop"],
  ["stop_sequence", "stop"],
  ["max_tokens", "length"],
  ["model_length", "length"],
  ["model_context_window_exceeded", "length"],
  ["sensitive", "content_filter"],
  ["content_filter: PROHIBITED_CONTENT", "content_filter"],
])("the finish reason %s ends an answer with %s", (written, reason) => {
  const { reader, events } = read(
    choice({ content: "a" }, { finish_reason: "" }),
    choice({}, { finish_reason: written }),
    // Only the first one counts.
    choice({}, { finish_reason: "stop" }),
  );
  expect(reader.finished()).toBe(true);
  reader.finish(events);
  expect(events.at(-1)).toEqual({ type: "finish", reason });
});

it("an answer without a finish reason is cut, and an unknown one is invalid", () => {
  const { reader } = read(choice({ content: "a" }, { finish_reason: null }));
  expect([reader.written(), reader.finished()]).toEqual([true, false]);
  expect(() => reader.finish([])).toThrow(expect.objectContaining({ reason: "answer_cut" }));
  const malformed = "function_call_filter: MALFORMED_FUNCTION_CALL";
  for (const unknown of ["done", 7, {}, malformed, "content_filter:", "no content_filter: X"])
    expect(() => read(choice({}, { finish_reason: unknown }))).toThrow(
      expect.objectContaining({ reason: "unknown_finish_reason" }),
    );
});

it("a chunk becomes events in order, after one with the answer's labels", () => {
  const { events, reader } = read(
    { id: "i", model: "m", system_fingerprint: "", choices: [] },
    {
      id: "other",
      ...choice(
        {
          reasoning: "r",
          content: "c",
          refusal: "no",
          annotations: [{ type: "url" }, "none"],
          images: "none",
          tool_calls: [{ index: 0, id: "a", function: { name: "f", arguments: "{}" } }],
        },
        { logprobs: { content: [] } },
      ),
    },
  );
  expect(reader.written()).toBe(true);
  expect(events).toEqual([
    { type: "answer-started", providerRequestId: "i", providerModel: "m" },
    { type: "reasoning-delta", text: "r", field: "reasoning" },
    { type: "text-delta", text: "c" },
    { type: "logprobs", logprobs: { content: [] } },
    { type: "refusal-delta", text: "no" },
    { type: "shown", name: "annotations", entries: [{ type: "url" }] },
    { type: "tool-call-started", index: 0, id: "a", name: "f" },
    { type: "tool-call-delta", index: 0, arguments: "{}" },
  ]);
});

it("content in chunks is text and thinking, which the upstream doesn't want back as a field", () => {
  const said = (text: string) => ({ type: "text", text });
  const thought = (...thinking: readonly Json[]) => ({ type: "thinking", thinking });
  const chunks = [thought(said("Two "), { type: "reference", reference_ids: [1] }, said("plus"))];
  const { events, reader } = read(
    choice({ content: "" }),
    choice({ content: chunks }),
    choice({ content: [thought(), said("Four"), { type: "reference", reference_ids: [1] }] }),
    choice({ content: " is it" }, { finish_reason: "stop" }),
  );
  const expected = [
    { type: "reasoning-delta", text: "Two " },
    { type: "reasoning-delta", text: "plus" },
    { type: "text-delta", text: "Four" },
    { type: "text-delta", text: " is it" },
  ];
  expect(events.slice(1)).toEqual(expected);
  expect(reader.written()).toBe(true);
  const whole = createAnswerReader({ seed: "seed", secrets: [] });
  const content = [...chunks, said("Four"), said(" is it")];
  const body = { choices: [{ message: { content }, finish_reason: "stop" }] };
  const all: CompletionEvent[] = [];
  whole.addWhole(body, all, JSON.stringify(body));
  expect(all.slice(1)).toEqual(expected);
  for (const invalid of [[7], [{ type: "text", text: 7 }], [{ type: "thinking", thinking: 7 }]])
    expect(() => read(choice({ content: invalid }))).toThrow();
});

it("only the first choice counts, and labels have a largest length", () => {
  const other = { index: 1, delta: { content: "other" } };
  const label = "x".repeat(255);
  expect(read({ id: label, model: `${label}x`, choices: [other] }).events).toEqual([
    { type: "answer-started", providerRequestId: label },
  ]);
  const { events } = read({ choices: [other, { delta: { content: "a" } }] }, { choices: null });
  expect(events).toEqual([{ type: "answer-started" }, { type: "text-delta", text: "a" }]);
  for (const invalid of [{ choices: {} }, { choices: ["a"] }, choice({ content: 7 }), []])
    expect(() => read(invalid)).toThrow();
});

it("usage is reported when a chunk has it or changes the tier", () => {
  const usage = { prompt_tokens: 1 };
  const { events } = read(
    { service_tier: "flex", usage: null },
    { service_tier: "flex", usage: null },
    { service_tier: "flex", usage },
    { usage },
  );
  expect(events.slice(1)).toEqual([
    { type: "usage", usage: { serviceTier: "flex" } },
    { type: "usage", usage: { promptTokens: 1, serviceTier: "flex" } },
    { type: "usage", usage: { promptTokens: 1 } },
  ]);
});

it("annotations and images are limited to 256 each", () => {
  const many = Array.from({ length: 200 }, () => ({}));
  const { events } = read(
    choice({ annotations: many }),
    choice({ annotations: many, images: many }),
  );
  const counts = events.map((event) => (event.type === "shown" ? event.entries.length : 0));
  expect(counts).toEqual([0, 200, 56, 200]);
});

it("a whole answer has a message, whose calls are in order", () => {
  const reader = createAnswerReader({ seed: "seed", secrets: [] });
  const events: CompletionEvent[] = [];
  const call = (name: string) => ({ id: "same", function: { name, arguments: "" } });
  const message = { content: null, tool_calls: [call("f"), call("g")] };
  const body = { choices: [{ message, finish_reason: "stop" }] };
  reader.addWhole(body, events, JSON.stringify(body));
  expect(events).toEqual([
    { type: "answer-started" },
    { type: "tool-call-started", index: 0, id: "same", name: "f" },
    { type: "tool-call-started", index: 1, id: "same", name: "g" },
  ]);
  for (const invalid of [[], {}, { choices: [] }, { choices: [{}] }, { choices: {} }])
    expect(() => createAnswerReader({ seed: "", secrets: [] }).addWhole(invalid, [], "")).toThrow(
      expect.objectContaining({ reason: "invalid_answer" }),
    );
});

it("a whole answer that a filter stopped may have no message", () => {
  const reader = createAnswerReader({ seed: "seed", secrets: [] });
  const events: CompletionEvent[] = [];
  const body = {
    choices: [{ index: 0, finish_reason: "content_filter: PROHIBITED_CONTENT" }],
    usage: { prompt_tokens: 9, completion_tokens: 0 },
  };
  reader.addWhole(body, events, JSON.stringify(body));
  reader.finish(events);
  expect(events).toEqual([
    { type: "answer-started" },
    { type: "usage", usage: { promptTokens: 9, completionTokens: 0 } },
    { type: "finish", reason: "content_filter" },
  ]);
  for (const reason of ["stop", "unknown", 7]) {
    const empty = { choices: [{ finish_reason: reason }] };
    const other = createAnswerReader({ seed: "", secrets: [] });
    expect(() => other.addWhole(empty, [], JSON.stringify(empty))).toThrow(
      expect.objectContaining({ reason: "invalid_answer" }),
    );
  }
});

it("a frame is known by the member with its text, if it has one choice and no calls", () => {
  expect(frameText.memberOf({ type: "text-delta", text: "a" })).toBe("content");
  const reasoning = { type: "reasoning-delta", field: "reasoning", text: "a" } as const;
  expect(frameText.memberOf(reasoning)).toBe("reasoning");
  const textIn = (...deltas: readonly Json[]) =>
    frameText.textIn({ choices: deltas.map((delta) => ({ delta })) }, "content");
  expect(textIn({ content: "a" })).toBe("a");
  expect(textIn({ content: "a" }, { content: "b" })).toBeUndefined();
  for (const calls of [{ tool_calls: [{ index: 0 }] }, { function_call: { name: "f" } }])
    expect(textIn({ content: "a", ...calls })).toBeUndefined();
});

it("arguments that are sent as a value keep the digits of their numbers", () => {
  const call =
    '{"index":0,"id":"a","function":{"name":"f","arguments":{"id":1234567890123456789}}}';
  for (const member of ["delta", "message"] as const) {
    const reader = createAnswerReader({ seed: "seed", secrets: [] });
    const text = `{"choices":[{"${member}":{"tool_calls":[${call}]}}]}`;
    const events: CompletionEvent[] = [];
    reader[member === "delta" ? "add" : "addWhole"](JSON.parse(text), events, text);
    expect(events.at(-1)).toMatchObject({ arguments: '{"id":1234567890123456789}' });
  }
});
