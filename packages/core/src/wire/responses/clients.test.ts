import { describe, expect, it } from "vitest";
import { defaultLimits } from "../../domain/limits.ts";
import { outputItems } from "./output-items.ts";
import { parseResponse, type ResponseCall } from "./parse.ts";
import { toMessages } from "./to-messages.ts";

const parameters = {
  $schema: "http://json-schema.org/draft-07/schema#",
  type: "object",
  properties: { city: { type: "string" } },
  additionalProperties: false,
};
const tool = { type: "function", name: "get_weather", description: "Weather", parameters };
const format = { type: "json_schema", name: "answer", strict: true, schema: parameters };
const read = (fields: object): ResponseCall =>
  parseResponse({ model: "sim/acme/echo", input: "Weather?", ...fields }, defaultLimits);

/** The fields that clients send by default, in addition to model and input. */
const clients: Readonly<Record<string, object>> = {
  "openai, create": {},
  "openai, stream": { stream: true },
  "openai, parse": { text: { format } },
  "AI SDK": {
    stream: true,
    temperature: 0.5,
    max_output_tokens: 100,
    tools: [{ ...tool, strict: false }],
    tool_choice: "auto",
  },
  "AI SDK, reasoning without storage": {
    store: false,
    include: ["reasoning.encrypted_content"],
    reasoning: { effort: "low", summary: "auto" },
  },
  "AI SDK, Open Responses": {
    instructions: "Be brief.",
    tool_choice: "auto",
    presence_penalty: 0.5,
    frequency_penalty: 0.5,
  },
  "OpenAI Agents": { include: [], tools: [], stream: false, instructions: "Be brief." },
  LangChain: { text: {}, stream: false, tools: [{ ...tool, strict: null }] },
  "LangChain, nothing retained": {
    text: {},
    store: false,
    include: ["reasoning.encrypted_content"],
  },
  "Codex CLI": {
    instructions: "You are a coding agent.",
    stream: true,
    store: false,
    tools: [tool],
    tool_choice: "auto",
    parallel_tool_calls: true,
    reasoning: { summary: "auto" },
    include: ["reasoning.encrypted_content"],
    prompt_cache_key: "0190a000-0000-7000-8000-000000000001",
    client_metadata: { "x-codex-installation-id": "0190a000" },
    text: { verbosity: "low" },
  },
  "explicit nulls": {
    instructions: null,
    previous_response_id: null,
    tools: null,
    tool_choice: null,
    text: null,
    reasoning: null,
    metadata: null,
    include: null,
    service_tier: null,
    conversation: null,
    background: null,
  },
};

describe("what clients send in their default mode", () => {
  it.each(Object.entries(clients))("is accepted: %s", (_client, fields) => {
    expect(toMessages(read(fields).input)).toEqual([{ role: "user", content: "Weather?" }]);
  });
});

const user = { role: "user", content: "Weather in Paris?" };
const called = {
  id: "call_1",
  type: "function",
  function: { name: "get_weather", arguments: '{"city":"Paris"}' },
} as const;
const [reasoning, answer, call] = outputItems(
  {
    parts: [
      { type: "reasoning", text: "I look it up." },
      { type: "text", text: "A moment." },
      { type: "tool-call", call: called },
    ],
    logprobs: [],
    finishReason: "tool_calls",
    usage: {},
  },
  "resp_0190a00000007000800000000000000a",
);
const plainCall = {
  type: "function_call",
  call_id: "call_1",
  name: "get_weather",
  arguments: '{"city":"Paris"}',
};
const output = { type: "function_call_output", call_id: "call_1", output: "18 degrees" };

/** The second step of a tool loop: the answer as each client sends it back, and the tool's result. */
const history: Readonly<Record<string, readonly unknown[]>> = {
  "the output unchanged": [user, reasoning, answer, call, output],
  "openai, a parsed output": [
    user,
    reasoning,
    answer,
    { ...call, parsed_arguments: { city: "Paris" } },
    output,
  ],
  "AI SDK": [
    { role: "user", content: [{ type: "input_text", text: "Weather in Paris?" }] },
    { role: "assistant", content: [{ type: "output_text", text: "A moment." }], id: answer?.id },
    { ...plainCall, id: call?.id },
    output,
  ],
  "OpenAI Agents": [
    { type: "message", ...user },
    reasoning,
    answer,
    call,
    { ...output, status: "completed" },
  ],
  LangChain: [user, { ...reasoning, content: [], encrypted_content: null }, answer, call, output],
  "Codex CLI": [
    {
      type: "message",
      id: null,
      role: "user",
      content: [{ type: "input_text", text: "Weather in Paris?" }],
    },
    { type: "reasoning", id: "rs_1", summary: [], content: null, encrypted_content: null },
    { type: "message", role: "assistant", content: [{ type: "output_text", text: "A moment." }] },
    { ...plainCall, id: null },
    output,
  ],
};

describe("what clients send back as history", () => {
  it.each(Object.entries(history))("becomes the same conversation: %s", (_client, input) => {
    expect(toMessages(read({ input, tools: [tool] }).input)).toMatchObject([
      user,
      { role: "assistant", content: "A moment.", tool_calls: [called] },
      { role: "tool", tool_call_id: "call_1", content: "18 degrees" },
    ]);
  });

  it("keeps the references of the AI SDK, which relies on stored items", () => {
    const input = [user, { type: "item_reference", id: answer?.id }, output];
    expect(read({ input }).input[1]).toEqual({ type: "item_reference", id: answer?.id });
  });
});
