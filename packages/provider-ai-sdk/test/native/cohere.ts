import { createCohere } from "@ai-sdk/cohere";
import { canary } from "@tollgate/conformance/provider-contract";
import { events, json } from "./answers.ts";
import { said, tool, type Vendor } from "./vendor.ts";

const usage = {
  billed_units: { input_tokens: 10, output_tokens: 5 },
  tokens: { input_tokens: 12, output_tokens: 5 },
};
const start = { type: "message-start", id: "answer-1", delta: { message: { role: "assistant" } } };
const text = (text: string) => ({
  type: "content-delta",
  index: 0,
  delta: { message: { content: { text } } },
});
const opening = [
  start,
  { type: "content-start", index: 0, delta: { message: { content: { type: "text", text: "" } } } },
];
const end = (finish_reason: string) => ({ type: "message-end", delta: { finish_reason, usage } });
const call = (name: string, part: string) => ({
  id: "get_weather_1",
  type: "function",
  function: { name, arguments: part },
});
const argumentsPart = (part: string) => ({
  type: "tool-call-delta",
  index: 0,
  delta: { message: { tool_calls: { function: { arguments: part } } } },
});
const whole = (finish_reason: string, message: object) =>
  json(200, {
    id: "answer-1",
    generation_id: "answer-1",
    finish_reason,
    message: { role: "assistant", ...message },
    usage,
  });
const expectedUsage = { promptTokens: 12, completionTokens: 5 };

/** Cohere's second chat protocol. */
export const cohere: Vendor = {
  name: "Cohere",
  connect:
    (url) =>
    ({ fetch, credential }) =>
      createCohere({ baseURL: `${url}/v2`, apiKey: credential, fetch }),
  fixtures: {
    text: {
      stream: events(
        ...opening,
        ...said.map(text),
        { type: "content-end", index: 0 },
        end("COMPLETE"),
      ),
      plain: whole("COMPLETE", { content: [{ type: "text", text: said.join("") }] }),
      expected: { text: said.join(""), toolCalls: [], usage: expectedUsage, finishReason: "stop" },
    },
    toolCall: {
      stream: events(
        start,
        {
          type: "tool-call-start",
          index: 0,
          delta: { message: { tool_calls: call(tool.name, "") } },
        },
        argumentsPart('{"city":'),
        argumentsPart('"Zürich"}'),
        { type: "tool-call-end", index: 0 },
        end("TOOL_CALL"),
      ),
      plain: whole("TOOL_CALL", { tool_calls: [call(tool.name, JSON.stringify(tool.input))] }),
      expected: {
        text: null,
        toolCalls: [{ name: tool.name, arguments: JSON.stringify(tool.input) }],
        usage: expectedUsage,
        finishReason: "tool_calls",
      },
    },
    cut: events(...opening, text("Half")),
    failing: events(...opening, text("Half"), { type: "error", message: canary }),
    error: json(503, { id: "answer-1", message: canary }),
  },
};
