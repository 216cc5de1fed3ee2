import { describe, expect, it } from "vitest";
import { defaultLimits } from "../../domain/limits.ts";
import type { Message } from "../../domain/message.ts";
import { parseWithDigits } from "../../kernel/json-guard.ts";
import { parseChatCompletion } from "./parse.ts";

const read = (...messages: readonly unknown[]): readonly Message[] =>
  parseChatCompletion({ model: "m", messages }, defaultLimits).request.messages;
const text = { type: "text", text: "Hello" };
const call = { id: "call_1", type: "function", function: { name: "f", arguments: "{}" } };
const image = (url: unknown, more: object = {}) => ({
  role: "user",
  content: [{ type: "image_url", image_url: { url, ...more } }],
});

function refused(message: unknown, code: string, param: string): void {
  const fault = expect.objectContaining({ code, param });
  expect(() => read({ role: "user", content: "first" }, message)).toThrow(fault);
}

describe("messages", () => {
  it.each<Message>([
    { role: "system", content: "s" },
    { role: "developer", content: [{ type: "text", text: "d" }], name: "n" },
    { role: "user", content: "" },
    { role: "user", content: [{ type: "text", text: "" }], name: "n" },
    { role: "user", content: [{ type: "image_url", image_url: { url: "https://x.test/a.png" } }] },
    { role: "assistant", content: "a" },
    { role: "assistant", content: "", tool_calls: [{ ...call, type: "function" }] },
    { role: "assistant", refusal: "no" },
    { role: "assistant", content: [{ type: "refusal", refusal: "no" }] },
    { role: "assistant" },
    { role: "tool", tool_call_id: "call_1", content: "r" },
    { role: "tool", tool_call_id: "call_1", content: [{ type: "text", text: "r" }] },
  ])("are read unchanged: %j", (message) => {
    expect(read(message)).toEqual([message]);
  });

  it("are refused with the code and the path of the fault", () => {
    const at = "messages[1]";
    refused("hi", "invalid_type", at);
    refused({}, "missing_required_parameter", `${at}.role`);
    refused({ role: 1 }, "invalid_type", `${at}.role`);
    refused({ role: "function", name: "f", content: "" }, "unsupported_value", `${at}.role`);
    refused({ role: "robot", content: "" }, "unsupported_value", `${at}.role`);
    refused({ role: "user" }, "missing_required_parameter", `${at}.content`);
    refused({ role: "user", content: null }, "missing_required_parameter", `${at}.content`);
    refused({ role: "user", content: 1 }, "invalid_type", `${at}.content`);
    refused({ role: "user", content: [] }, "invalid_value", `${at}.content`);
    refused({ role: "user", content: ["x"] }, "invalid_type", `${at}.content[0]`);
    refused({ role: "user", content: "x", name: 1 }, "invalid_type", `${at}.name`);
    refused({ role: "user", content: "x", name: "n".repeat(256) }, "invalid_value", `${at}.name`);
    refused({ role: "tool", content: "x" }, "missing_required_parameter", `${at}.tool_call_id`);
    refused({ role: "tool", tool_call_id: "1" }, "missing_required_parameter", `${at}.content`);
  });

  it("have the parts that their role allows", () => {
    const part = (role: string, content: unknown) => ({
      role,
      tool_call_id: "1",
      content: [text, content],
    });
    const user = (content: unknown) => ({ role: "user", content: [text, content] });
    const at = "messages[1].content[1]";
    refused(user({ text: "x" }), "missing_required_parameter", `${at}.type`);
    refused(user({ type: "text" }), "missing_required_parameter", `${at}.text`);
    refused(user({ type: "text", text: 1 }), "invalid_type", `${at}.text`);
    refused(user({ ...text, cache_control: "x" }), "invalid_type", `${at}.cache_control`);
    refused(user({ type: "input_audio", input_audio: {} }), "unsupported_value", `${at}.type`);
    refused(user({ type: "file", file: {} }), "unsupported_value", `${at}.type`);
    refused(user({ type: "refusal", refusal: "x" }), "unsupported_value", `${at}.type`);
    refused(part("tool", { type: "image_url", image_url: {} }), "unsupported_value", `${at}.type`);
  });
});

describe("images", () => {
  it.each([
    "https://x.test/a.png?b=c#d",
    "HTTP://127.0.0.1/",
    "http://[::ffff:7f00:1]/x",
    "data:image/png;base64,iVBORw0KGgo=",
    "DATA:IMAGE/svg+xml;BASE64,AAAA",
  ])("may be at %j", (url) => {
    expect(read(image(url))).toEqual([image(url)]);
    expect(read(image(url, { detail: "low" }))).toEqual([image(url, { detail: "low" })]);
    expect(read(image(url, { detail: null }))).toEqual([image(url)]);
  });

  it.each([
    "",
    "x.png",
    "/a.png",
    "//x.test/a.png",
    "ftp://x.test/a.png",
    "file:///etc/passwd",
    "http://",
    "http:///a",
    "https://x.test:99999/",
    `https://x.test/${"a".repeat(8_192)}`,
    "javascript:alert(1)",
    "data:,x",
    "data:text/html;base64,AAAA",
    "data:image/png,AAAA",
    "data:image/png;base64,",
    "data:image/png;base64,A A",
    "data:image/png;base64,A===",
    "data:image/png;base64,AA\n",
  ])("may not be at %j (S8)", (url) => {
    refused(image(url), "invalid_value", "messages[1].content[0].image_url.url");
  });

  it("name the path of every other fault", () => {
    const at = "messages[1].content[0].image_url";
    refused(image(1), "invalid_type", `${at}.url`);
    refused(image(null), "missing_required_parameter", `${at}.url`);
    refused(image("https://x.test", { detail: 1 }), "invalid_type", `${at}.detail`);
    refused(image("https://x.test", { file_id: "f" }), "unsupported_parameter", `${at}.file_id`);
  });
});

describe("assistant history", () => {
  it("may contain members of SDKs, which are dropped, and of providers, which are kept", () => {
    const answer = { role: "assistant", content: "a", refusal: null, name: null, tool_calls: null };
    const added = {
      annotations: [],
      audio: null,
      function_call: null,
      parsed: { a: 1 },
      id: "msg_1",
      reasoning: "r",
      reasoning_content: "r",
      reasoning_details: [{}],
    };
    const fields = { reasoning: "r", reasoning_content: "r", reasoning_details: [{}] };
    expect(read({ ...answer, ...added })).toEqual([
      { role: "assistant", content: "a", state: { from: null, fields } },
    ]);
  });

  it("may have empty, null or absent content", () => {
    const message = { role: "assistant", tool_calls: [call] };
    for (const content of [null, undefined, []])
      expect(read({ ...message, content })).toEqual([message]);
    expect(read({ ...message, content: "" })).toEqual([{ ...message, content: "" }]);
    expect(read({ role: "assistant", content: "a", tool_calls: [] })).toEqual([
      { role: "assistant", content: "a" },
    ]);
  });

  it("may have tool calls that a client joined from a stream or parsed", () => {
    const collected = {
      ...call,
      index: 0,
      function: { ...call.function, parsed_arguments: { a: 1 } },
    };
    expect(read({ role: "assistant", tool_calls: [collected] })).toEqual([
      { role: "assistant", tool_calls: [call] },
    ]);
  });

  it("is refused with an old function call or audio, which is never dropped silently", () => {
    const old = { name: "f", arguments: "{}" };
    refused(
      { role: "assistant", function_call: old },
      "unsupported_parameter",
      "messages[1].function_call",
    );
    refused(
      { role: "assistant", audio: { id: "a" } },
      "unsupported_parameter",
      "messages[1].audio",
    );
  });

  it("is refused with the path into a tool call", () => {
    const at = "messages[1].tool_calls[0]";
    const calling = (change: object) => ({
      role: "assistant",
      tool_calls: [{ ...call, ...change }],
    });
    refused(calling({ id: undefined }), "missing_required_parameter", `${at}.id`);
    refused(calling({ id: "x".repeat(65_537) }), "invalid_value", `${at}.id`);
    refused(calling({ type: "custom" }), "unsupported_value", `${at}.type`);
    refused(calling({ function: null }), "missing_required_parameter", `${at}.function`);
    refused(
      calling({ function: { name: "f" } }),
      "missing_required_parameter",
      `${at}.function.arguments`,
    );
    refused(
      calling({ function: { name: "f", arguments: {} } }),
      "invalid_type",
      `${at}.function.arguments`,
    );
    refused(calling({ extra_content: "x" }), "invalid_type", `${at}.extra_content`);
  });
});

describe("a tool's result", () => {
  it("may name the tool, as agents do", () => {
    const message = { role: "tool", tool_call_id: "call_1", content: "r" };
    expect(read({ ...message, name: "get_weather" })).toEqual([message]);
  });
});

const dropped = (...messages: readonly unknown[]): Readonly<Record<string, number>> =>
  parseChatCompletion({ model: "m", messages }, defaultLimits).droppedFields;

describe("unknown members of a message", () => {
  it("are dropped and counted by name, wherever they are", () => {
    const messages = [
      { role: "system", content: "s", __source: "a" },
      { role: "user", content: [{ ...text, extra: { deep: [1] } }], tool_calls: [], gone: null },
      {
        role: "assistant",
        content: "a",
        annotations: [],
        id: "msg_1",
        tool_calls: [{ ...call, index: 0, function: { ...call.function, parsed_arguments: {} } }],
      },
      { role: "tool", tool_call_id: "call_1", content: "r", name: "f", extra: 1 },
    ];
    expect(read(...messages)).toEqual([
      { role: "system", content: "s" },
      { role: "user", content: [text] },
      { role: "assistant", content: "a", tool_calls: [call] },
      { role: "tool", tool_call_id: "call_1", content: "r" },
    ]);
    expect(dropped(...messages)).toEqual({
      __source: 1,
      extra: 2,
      tool_calls: 1,
      annotations: 1,
      id: 1,
      index: 1,
      parsed_arguments: 1,
      name: 1,
    });
  });

  it("are counted under at most 33 short names that any store accepts", () => {
    const many = Array.from({ length: 300 }, (_, index) => [`key${index}`, 1]);
    const counts = dropped(
      { role: "user", content: "x", ["k".repeat(500)]: 1, "a\u0000\uD800b": 1 },
      { role: "user", content: "x", ...Object.fromEntries(many) },
    );
    expect(Object.keys(counts)).toHaveLength(33);
    expect(counts).toMatchObject({ [`${"k".repeat(63)}…`]: 1, "a��b": 1, "…": 270 });
  });

  it("are refused if they are unsupported content", () => {
    const part = { ...text, file_id: "f" };
    refused(
      { role: "user", content: [part] },
      "unsupported_parameter",
      "messages[1].content[0].file_id",
    );
    for (const name of ["file_id", "file_url", "file_data", "audio", "function_call"]) {
      const at = `messages[1].${name}`;
      refused({ role: "user", content: "x", [name]: "y" }, "unsupported_parameter", at);
      expect(read({ role: "user", content: "x", [name]: null })).toHaveLength(1);
    }
  });
});

describe("state of a provider", () => {
  const cache = { cache_control: { type: "ephemeral" } };
  const state = { from: null, fields: cache };

  it("stays with the message, part or call it came with", () => {
    const signed = { extra_content: { google: { thought_signature: "s" } } };
    expect(
      read(
        { role: "system", content: [{ ...text, ...cache }], ...cache },
        { ...image("https://x.test/a.png"), ...cache },
        { role: "assistant", tool_calls: [{ ...call, ...signed }], thinking_blocks: [{}] },
        { role: "assistant", content: "a", ...signed },
        { role: "tool", tool_call_id: "call_1", content: [{ ...text, ...cache }] },
      ),
    ).toEqual([
      { role: "system", content: [{ ...text, state }], state },
      { ...image("https://x.test/a.png"), state },
      {
        role: "assistant",
        tool_calls: [{ ...call, state: { from: null, fields: signed } }],
        state: { from: null, fields: { thinking_blocks: [{}] } },
      },
      { role: "assistant", content: "a", state: { from: null, fields: signed } },
      { role: "tool", tool_call_id: "call_1", content: [{ ...text, state }] },
    ]);
  });

  it("moves from the parts of an answer to their message, whose own state takes precedence", () => {
    const whole = { role: "assistant", refusal: null, annotations: [], reasoning_content: "r" };
    expect(
      read({
        role: "assistant",
        content: [
          { ...text, ...whole, ...cache, reasoning: "part" },
          { type: "refusal", refusal: "no", reasoning: "other" },
        ],
        reasoning_content: "mine",
      }),
    ).toEqual([
      {
        role: "assistant",
        content: [
          { ...text, state },
          { type: "refusal", refusal: "no" },
        ],
        state: { from: null, fields: { reasoning_content: "mine", reasoning: "part" } },
      },
    ]);
  });

  it("is refused if it is malformed", () => {
    const at = "messages[1]";
    const said = (more: object) => ({ role: "assistant", content: "a", ...more });
    refused(said({ reasoning_content: {} }), "invalid_type", `${at}.reasoning_content`);
    refused(said({ reasoning: 1 }), "invalid_type", `${at}.reasoning`);
    refused(said({ reasoning_details: {} }), "invalid_type", `${at}.reasoning_details`);
    refused(said({ thinking_blocks: "x" }), "invalid_type", `${at}.thinking_blocks`);
    refused(
      said({ provider_specific_fields: [] }),
      "invalid_type",
      `${at}.provider_specific_fields`,
    );
    refused(said({ cache_control: true }), "invalid_type", `${at}.cache_control`);
  });

  it("must have no number that loses digits", () => {
    const extra_content = parseWithDigits('{"input":{"id":1234567890123456789}}');
    const at = "messages[1].extra_content";
    refused({ role: "assistant", content: "a", extra_content }, "invalid_value", at);
  });

  it("nests at most 32 levels deep", () => {
    const nested = (depth: number): unknown => (depth === 0 ? "x" : [nested(depth - 1)]);
    const said = (depth: number) => ({ role: "assistant", thinking_blocks: nested(depth) });
    expect(read(said(32))).toHaveLength(1);
    refused(said(33), "invalid_value", "messages[1].thinking_blocks");
  });

  it("takes at most 2.5 MiB of a message in total", () => {
    const half = "x".repeat(1_310_000);
    const said = (more: object) => ({ role: "assistant", content: "a", ...more });
    expect(read(said({ reasoning: half }), said({ reasoning: half }))).toHaveLength(2);
    const calls = [{ ...call, extra_content: { half } }];
    expect(read(said({ reasoning: half, tool_calls: calls }))).toHaveLength(1);
    refused(
      said({ reasoning: half, reasoning_content: "y".repeat(2_000), tool_calls: calls }),
      "invalid_value",
      "messages[1]",
    );
  });
});
