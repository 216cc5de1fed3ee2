import { describe, expect, it } from "vitest";
import { fixture, readBytes, readWhole } from "../test/drive.ts";
import { frameText, usageReport } from "./answer-reader.ts";
import { rateLimitWait } from "./upstream-errors.ts";

const sse = (...events: readonly object[]): readonly Buffer[] =>
  events.map((event) => Buffer.from(`data: ${JSON.stringify(event)}\n\n`));
const stopped = (stop_reason: unknown, stop_sequence: unknown = null) => ({
  type: "message_delta",
  delta: { stop_reason, stop_sequence },
});
const block = (content_block: object, index = 0) => ({
  type: "content_block_start",
  index,
  content_block,
});
const delta = (change: object, index: unknown = 0) => ({
  type: "content_block_delta",
  index,
  delta: change,
});

describe("an answer", () => {
  it.each([
    ["end_turn", "stop"],
    ["pause_turn", "stop"],
    ["stop_sequence", "stop"],
    ["max_tokens", "length"],
    ["model_context_window_exceeded", "length"],
    ["tool_use", "tool_calls"],
    ["refusal", "content_filter"],
  ])("that stopped for %s ends with %s", (written, reason) => {
    expect(readBytes(sse(stopped(written))).at(-1)).toEqual({ type: "finish", reason });
  });

  it("begins with its id and the model that gives it", () => {
    const message = { id: "msg_1", model: "claude-sonnet-5" };
    const begun = {
      type: "answer-started",
      providerRequestId: "msg_1",
      providerModel: "claude-sonnet-5",
    };
    expect(readBytes(sse({ type: "message_start", message }, stopped("end_turn")))[0]).toEqual(
      begun,
    );
    const whole = { ...message, type: "message", content: [], stop_reason: "end_turn" };
    expect(readWhole(JSON.stringify(whole))[0]).toEqual(begun);
  });

  it("keeps the digits of tool arguments that are sent as a value", () => {
    const deep = `${'{"a":'.repeat(63)}1234567890123456789${"}".repeat(63)}`;
    const input = `{"id":1234567890123456789,"factor":1e400,"deep":${deep}}`;
    const call = `{"type":"tool_use","id":"a","name":"f","input":${input}}`;
    const asked = { type: "tool-call-delta", index: 0, arguments: input };
    expect(readWhole(`{"content":[${call}],"stop_reason":"tool_use"}`)).toContainEqual(asked);
    const begun = `data: {"type":"content_block_start","index":0,"content_block":${call}}\n\n`;
    const events = readBytes([Buffer.from(begun), ...sse(stopped("tool_use"))]);
    expect(events).toContainEqual(asked);
  });

  it("names the stop text that ended it", () => {
    expect(readBytes(sse(stopped("stop_sequence", "END"))).at(-1)).toEqual({
      type: "finish",
      reason: "stop",
      stopText: "END",
    });
  });

  it("says why it was refused", () => {
    const why = { category: "cyber", explanation: "It could harm." };
    const stop_details = { type: "refusal", ...why };
    const finish = { type: "finish", reason: "content_filter", refusal: why };
    const { delta: refused, type } = stopped("refusal");
    expect(readBytes(sse({ type, delta: { ...refused, stop_details } })).at(-1)).toEqual(finish);
    expect(readWhole(JSON.stringify({ content: [], ...refused, stop_details })).at(-1)).toEqual(
      finish,
    );
  });

  it.each([
    ["answer_cut", [stopped(null)]],
    ["unknown_finish_reason", [stopped("bored")]],
    ["invalid_event", [delta({ type: "text_delta", text: "a" })]],
    ["invalid_event", [block({ type: "text" }), delta({ type: "text_delta", text: "a" }, -1)]],
    ["invalid_event", [block({ type: "tool_use", id: "a" })]],
    ["invalid_event", [block({})]],
    ["invalid_event", [block({ type: "text", text: 7 })]],
    ["invalid_event", [block({ type: "redacted_thinking", data: {} })]],
    ["invalid_event", [block({ type: "text" }), delta({ type: "text_delta", text: ["a"] })]],
    ["too_many_values", Array.from({ length: 5_000 }, () => block({ type: "text" }))],
    [
      "answer_too_large",
      [
        block({ type: "thinking" }),
        ...Array.from({ length: 4 }, () =>
          delta({ type: "signature_delta", signature: "s".repeat(900_000) }),
        ),
      ],
    ],
  ])("fails with %s if it breaks the protocol", (reason, events) => {
    expect(() => readBytes(sse(...events))).toThrow(
      expect.objectContaining({ reason, delivery: "unknown" }),
    );
  });

  it("ignores events and blocks that it doesn't know", () => {
    const events = sse(
      { type: "ping" },
      { type: "from_the_future", index: 0 },
      block({ type: "server_tool_use", id: "a", name: "web_search" }),
      delta({ type: "input_json_delta", partial_json: "{}" }),
      { type: "content_block_stop", index: 0 },
      block({ type: "text", text: "" }, 1),
      delta({ type: "citations_delta", citation: {} }, 1),
      delta({ type: "text_delta", text: "a" }, 1),
      stopped("end_turn"),
      { type: "message_stop" },
      stopped("nothing after the end is read"),
    );
    expect(readBytes(events).slice(1)).toEqual([
      { type: "text-delta", text: "a" },
      { type: "finish", reason: "stop" },
    ]);
  });

  it.each(["text", "tool-use", "thinking"])(
    "in one body says the same as the stream of %s",
    (name) => {
      const whole = readWhole(fixture(`${name}.json`));
      expect(joined(readBytes([Buffer.from(fixture(`${name}.sse`))]))).toEqual(joined(whole));
    },
  );

  it.each(["text", "tool-use", "thinking"])(
    "is the same wherever the stream of %s is cut",
    (name) => {
      const bytes = Buffer.from(fixture(`${name}.sse`));
      const expected = readBytes(Array.from(bytes, (_, at) => bytes.subarray(at, at + 1)));
      for (let at = 0; at <= bytes.length; at++)
        expect(readBytes([bytes.subarray(0, at), bytes.subarray(at)])).toEqual(expected);
    },
  );

  it.each(["text", "tool-use", "thinking"])(
    "of %s is complete from the end of its stop reason on, and cut at every byte before",
    (name) => {
      const bytes = Buffer.from(fixture(`${name}.sse`));
      const whole = readBytes([bytes]);
      const stopped = bytes.indexOf("\n\n", bytes.indexOf("event: message_delta")) + 1;
      for (let end = 0; end <= bytes.length; end++) {
        const read = () => readBytes([bytes.subarray(0, end)]);
        if (end > stopped) expect(read(), `byte ${end}`).toEqual(whole);
        else expect(read, `byte ${end}`).toThrow("ended before it was complete");
      }
    },
  );

  it("carries its thinking as state with places among the other blocks", () => {
    const state = readWhole(fixture("thinking.json")).flatMap((event) =>
      event.type === "state" ? [event.fields["thinking_blocks"]] : [],
    );
    expect(state.flat()).toEqual([
      { type: "thinking", index: 0, thinking: "Let me see. 🌍" },
      { type: "thinking", index: 0, signature: "c2lnbmVk" },
      { type: "redacted_thinking", index: 1, data: "ZW5jcnlwdGVk" },
      { type: "thinking", index: 3, thinking: "Now the tool." },
      { type: "thinking", index: 3, signature: "c2Vjb25k" },
    ]);
  });

  it("counts texts without thinking shown between them as one", () => {
    const text = { type: "text", text: "a" };
    const hidden = { type: "thinking", thinking: "", signature: "s" };
    const content = [text, text, hidden, text, { type: "redacted_thinking", data: "d" }];
    const events = readWhole(JSON.stringify({ content, stop_reason: "end_turn" }));
    const blocks = events.flatMap((event) =>
      event.type === "state" ? [event.fields["thinking_blocks"]] : [],
    );
    expect(blocks.flat()).toMatchObject([{ index: 1 }, { index: 2 }]);
  });
});

/** The texts of each kind, and the other events, without usage so far. */
function joined(events: ReturnType<typeof readBytes>): object {
  const said = new Map<string, string>();
  let usage = {};
  for (const event of events) {
    const key = `${event.type} ${"index" in event ? event.index : ""}`;
    if (event.type === "usage") usage = { ...usage, ...event.usage };
    else if (event.type === "state") {
      for (const entry of [event.fields["thinking_blocks"]].flat()) {
        const { index, thinking = "", signature = "", data = "" } = Object(entry);
        said.set(
          `state ${index}`,
          `${said.get(`state ${index}`) ?? ""}${thinking}${signature}${data}`,
        );
      }
    } else if ("text" in event) said.set(key, (said.get(key) ?? "") + event.text);
    else if (event.type === "tool-call-delta")
      said.set(key, (said.get(key) ?? "") + event.arguments);
    else said.set(key, JSON.stringify(event));
  }
  return { said: Object.fromEntries(said), usage };
}

describe("usage", () => {
  it("adds what the cache served to the prompt, and keeps both lifetimes of what it stored", () => {
    const usage = {
      input_tokens: 10,
      cache_read_input_tokens: 100,
      cache_creation_input_tokens: 30,
      cache_creation: { ephemeral_5m_input_tokens: 20, ephemeral_1h_input_tokens: 10 },
      output_tokens: 50,
      output_tokens_details: { thinking_tokens: 40 },
      service_tier: "priority",
    };
    const report = {
      promptTokens: 140,
      cachedTokens: 100,
      cacheWriteTokens: 30,
      cacheWrite1hTokens: 10,
      completionTokens: 50,
      reasoningTokens: 40,
      serviceTier: "priority",
    };
    expect(usageReport(usage)).toEqual(report);
    const { cache_creation_input_tokens: _, ...bySum } = usage;
    expect(usageReport(bySum)).toEqual(report);
  });

  it("distinguishes zero from missing, and drops figures that cannot be", () => {
    expect(usageReport({ input_tokens: 0, output_tokens: 0 })).toEqual({
      promptTokens: 0,
      completionTokens: 0,
    });
    expect(usageReport({ input_tokens: -1, output_tokens: 1e12, service_tier: 7 })).toBeNull();
    expect(
      usageReport({ output_tokens: 1, output_tokens_details: { thinking_tokens: 2 } }),
    ).toEqual({ completionTokens: 1 });
  });

  it("of a message that begins has no output, even if its end reports none", () => {
    const usage = { input_tokens: 3, output_tokens: 1 };
    const ending = { ...stopped("end_turn"), usage: { input_tokens: 4, output_tokens: null } };
    const [, early, late] = readBytes(sse({ type: "message_start", message: { usage } }, ending));
    expect(early).toEqual({ type: "usage", usage: { promptTokens: 3 } });
    expect(late).toEqual({ type: "usage", usage: { promptTokens: 4 } });
  });

  it("of a message that begins with a prompt of 0 tokens is not reported until its end", () => {
    const usage = { input_tokens: 0, output_tokens: 0, cache_read_input_tokens: 0 };
    const start = (more: object) => ({ type: "message_start", message: { usage: more } });
    const ending = { ...stopped("end_turn"), usage: { input_tokens: 4, output_tokens: 2 } };
    expect(readBytes(sse(start(usage), ending))[1]).toEqual({
      type: "usage",
      usage: { promptTokens: 4, completionTokens: 2 },
    });
    expect(readBytes(sse(start({ ...usage, service_tier: "standard" }), ending))[1]).toEqual({
      type: "usage",
      usage: { serviceTier: "standard" },
    });
    const cached = readBytes(sse(start({ ...usage, cache_read_input_tokens: 9 }), ending));
    expect(cached[1]).toEqual({ type: "usage", usage: { promptTokens: 9, cachedTokens: 9 } });
  });
});

it("waits until every rate limit that is used up is full again", () => {
  const now = Date.UTC(2026, 0, 1);
  const limit = (name: string, remaining: string, reset: string) => ({
    [`anthropic-ratelimit-${name}-remaining`]: remaining,
    [`anthropic-ratelimit-${name}-reset`]: reset,
  });
  const at = (seconds: number) => new Date(now + seconds * 1_000).toISOString();
  const headers = {
    ...limit("requests", "0", at(3)),
    ...limit("input-tokens", "0", at(7)),
    ...limit("tokens", "5", at(60)),
  };
  expect(rateLimitWait(headers, now)).toBe(7_000);
  expect(rateLimitWait(limit("requests", "0", at(86_400)), now)).toBe(3_600_000);
  for (const reset of ["soon", "-1", "2026"])
    expect(rateLimitWait(limit("requests", "0", reset), now)).toBeNull();
});

it("a frame is known by the member with its text, and thinking is always parsed", () => {
  expect(frameText.memberOf({ type: "text-delta", text: "a" })).toBe("text");
  expect(frameText.memberOf({ type: "reasoning-delta", text: "a" })).toBeUndefined();
  const textIn = (type: string, kind: string) =>
    frameText.textIn({ type, index: 0, delta: { type: kind, text: "a" } }, "text");
  expect(textIn("content_block_delta", "text_delta")).toBe("a");
  expect(textIn("content_block_delta", "thinking_delta")).toBeUndefined();
  expect(textIn("content_block_start", "text_delta")).toBeUndefined();
});
