import { createAnthropic } from "@ai-sdk/anthropic";
import { canary } from "@tollgate/conformance/provider-contract";
import { events, json } from "./answers.ts";
import { said, tool, type Vendor } from "./vendor.ts";

const usage = { input_tokens: 8, cache_creation_input_tokens: 0, cache_read_input_tokens: 4 };
const message = { id: "msg_1", type: "message", role: "assistant", model: "claude-test" };
const start = {
  type: "message_start",
  message: { ...message, content: [], stop_reason: null, usage: { ...usage, output_tokens: 1 } },
};
const block = (content_block: object) => ({ type: "content_block_start", index: 0, content_block });
const delta = (delta: object) => ({ type: "content_block_delta", index: 0, delta });
const stop = (stop_reason: string) => [
  { type: "content_block_stop", index: 0 },
  {
    type: "message_delta",
    delta: { stop_reason, stop_sequence: null },
    usage: { output_tokens: 5 },
  },
  { type: "message_stop" },
];
const whole = (stop_reason: string, content: object) =>
  json(200, {
    ...message,
    content: [content],
    stop_reason,
    stop_sequence: null,
    usage: { ...usage, output_tokens: 5 },
  });
const half = [
  start,
  block({ type: "text", text: "" }),
  delta({ type: "text_delta", text: "Half" }),
];
const expectedUsage = {
  promptTokens: 12,
  completionTokens: 5,
  cachedTokens: 4,
  cacheWriteTokens: 0,
};
const error = { type: "error", error: { type: `Type ${canary}`, message: canary } };

/** The Messages protocol. */
export const anthropic: Vendor = {
  name: "Anthropic",
  connect:
    (url) =>
    ({ fetch, credential }) =>
      createAnthropic({ baseURL: `${url}/v1`, apiKey: credential, fetch }),
  fixtures: {
    text: {
      stream: events(
        start,
        block({ type: "text", text: "" }),
        { type: "ping" },
        ...said.map((text) => delta({ type: "text_delta", text })),
        ...stop("end_turn"),
      ),
      plain: whole("end_turn", { type: "text", text: said.join("") }),
      expected: { text: said.join(""), toolCalls: [], usage: expectedUsage, finishReason: "stop" },
    },
    toolCall: {
      stream: events(
        start,
        block({ type: "tool_use", id: "toolu_1", name: tool.name, input: {} }),
        delta({ type: "input_json_delta", partial_json: "" }),
        delta({ type: "input_json_delta", partial_json: '{"city":' }),
        delta({ type: "input_json_delta", partial_json: '"Zürich"}' }),
        ...stop("tool_use"),
      ),
      plain: whole("tool_use", { type: "tool_use", id: "toolu_1", ...tool }),
      expected: {
        text: null,
        toolCalls: [{ name: tool.name, arguments: JSON.stringify(tool.input) }],
        usage: expectedUsage,
        finishReason: "tool_calls",
      },
    },
    cut: events(...half),
    failing: events(...half, error),
    error: json(529, error),
  },
};
