import { describe, expect, it } from "vitest";
import { defaultLimits } from "../../domain/limits.ts";
import type { Message } from "../../domain/message.ts";
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
  ])("are read as they are: %j", (message) => {
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
    refused(
      { role: "user", content: "x", tool_calls: [] },
      "unknown_parameter",
      `${at}.tool_calls`,
    );
    refused({ role: "user", content: "x", name: 1 }, "invalid_type", `${at}.name`);
    refused({ role: "user", content: "x", name: "n".repeat(256) }, "invalid_value", `${at}.name`);
    refused({ role: "tool", content: "x" }, "missing_required_parameter", `${at}.tool_call_id`);
    refused({ role: "tool", tool_call_id: "1" }, "missing_required_parameter", `${at}.content`);
    refused({ role: "assistant", content: "", other: 1 }, "unknown_parameter", `${at}.other`);
  });

  it("have parts by their role", () => {
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
    refused(user({ ...text, cache_control: {} }), "unknown_parameter", `${at}.cache_control`);
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
  ])("may not be at %j", (url) => {
    refused(image(url), "invalid_value", "messages[1].content[0].image_url.url");
  });

  it("name the path of every other fault", () => {
    const at = "messages[1].content[0].image_url";
    refused(image(1), "invalid_type", `${at}.url`);
    refused(image(null), "missing_required_parameter", `${at}.url`);
    refused(image("https://x.test", { detail: 1 }), "invalid_type", `${at}.detail`);
    refused(image("https://x.test", { file_id: "f" }), "unknown_parameter", `${at}.file_id`);
  });
});

describe("assistant history", () => {
  it("may hold what gateways and SDKs add, which is dropped", () => {
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
    expect(read({ ...answer, ...added })).toEqual([{ role: "assistant", content: "a" }]);
  });

  it("holds content that is empty, null or absent", () => {
    const message = { role: "assistant", tool_calls: [call] };
    for (const content of [null, undefined, []])
      expect(read({ ...message, content })).toEqual([message]);
    expect(read({ ...message, content: "" })).toEqual([{ ...message, content: "" }]);
    expect(read({ role: "assistant", content: "a", tool_calls: [] })).toEqual([
      { role: "assistant", content: "a" },
    ]);
  });

  it("holds tool calls as clients collect them from a stream or parse them", () => {
    const collected = {
      ...call,
      index: 0,
      function: { ...call.function, parsed_arguments: { a: 1 } },
    };
    expect(read({ role: "assistant", tool_calls: [collected] })).toEqual([
      { role: "assistant", tool_calls: [call] },
    ]);
  });

  it("does not lose an earlier function call or audio in silence", () => {
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
    refused(calling({ id: "x".repeat(256) }), "invalid_value", `${at}.id`);
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
    refused(calling({ other: 1 }), "unknown_parameter", `${at}.other`);
  });
});

describe("a tool's result", () => {
  it("may name the tool, as agents do", () => {
    const message = { role: "tool", tool_call_id: "call_1", content: "r" };
    expect(read({ ...message, name: "get_weather" })).toEqual([message]);
  });
});
