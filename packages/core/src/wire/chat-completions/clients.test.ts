import { describe, expect, it } from "vitest";
import { defaultLimits } from "../../domain/limits.ts";
import { parseChatCompletion } from "./parse.ts";

const messages = [{ role: "user", content: "Weather in Paris?" }];
const parameters = {
  $schema: "http://json-schema.org/draft-07/schema#",
  type: "object",
  properties: { city: { type: "string" } },
  additionalProperties: false,
};
const toolOf = (more: object) => ({
  type: "function",
  function: { name: "get_weather", description: "Weather", parameters, ...more },
});
const toolCall = {
  id: "call_1",
  type: "function",
  function: { name: "get_weather", arguments: '{"city":"Paris"}' },
};
const toolResult = { role: "tool", tool_call_id: "call_1", content: "18 degrees" };

/** The fields that clients send by default, in addition to model and messages. */
const clients: Readonly<Record<string, object>> = {
  "openai, create": {},
  "openai, stream": { stream: true },
  "openai, parse": {
    response_format: {
      type: "json_schema",
      json_schema: { name: "answer", strict: true, schema: parameters },
    },
  },
  "openai, runTools": { tools: [toolOf({ strict: true })], tool_choice: "auto", stream: false },
  "AI SDK": {
    stream: true,
    stream_options: { include_usage: true },
    max_tokens: 100,
    temperature: 0.5,
    top_p: 1,
    frequency_penalty: 0,
    presence_penalty: 0,
    stop: ["END"],
    seed: 1,
    tools: [toolOf({})],
    tool_choice: "auto",
  },
  "AI SDK, OpenAI-compatible, JSON": { response_format: { type: "json_object" } },
  "OpenAI Agents": { stream: false, tools: [toolOf({ strict: false })] },
  "OpenAI Agents, streaming, no tools": {
    stream: true,
    stream_options: { include_usage: true },
    tools: [],
    tool_choice: "auto",
    parallel_tool_calls: true,
  },
  "LangChain, plain": { stream: false, stream_options: { include_usage: true } },
  "LangChain, tools": { stream: false, tools: [toolOf({ strict: null })] },
  "explicit nulls": { tools: null, tool_choice: null, stop: null, metadata: null, user: null },
};

describe("what clients send in their default mode", () => {
  it.each(Object.entries(clients))("is accepted: %s", (_client, fields) => {
    const body = { model: "sim/acme/echo", messages, ...fields };
    expect(parseChatCompletion(body, defaultLimits).request.messages).toEqual(messages);
  });
});

/** The second turn: the answer as each client sends it back, and the tool's result. */
const history: Readonly<Record<string, readonly object[]>> = {
  "openai, the message it received": [
    {
      role: "assistant",
      content: null,
      refusal: null,
      annotations: [],
      audio: null,
      function_call: null,
      tool_calls: [toolCall],
    },
    toolResult,
  ],
  "openai, a parsed message": [
    {
      role: "assistant",
      content: null,
      parsed: null,
      refusal: null,
      tool_calls: [
        { ...toolCall, function: { ...toolCall.function, parsed_arguments: { city: "Paris" } } },
      ],
    },
    toolResult,
  ],
  "AI SDK": [{ role: "assistant", content: "", tool_calls: [toolCall] }, toolResult],
  "AI SDK, OpenAI-compatible, with reasoning": [
    { role: "assistant", content: "", reasoning_content: "I look it up.", tool_calls: [toolCall] },
    toolResult,
  ],
  "OpenAI Agents": [{ role: "assistant", content: null, tool_calls: [toolCall] }, toolResult],
  "LangChain, naming the tool": [
    { role: "assistant", content: "", tool_calls: [toolCall] },
    { ...toolResult, name: "get_weather" },
  ],
  "a client that joins the chunks itself": [
    { role: "assistant", content: "", refusal: null, tool_calls: [{ index: 0, ...toolCall }] },
    toolResult,
  ],
};

describe("what clients send back as history", () => {
  it.each(Object.entries(history))("is accepted: %s", (_client, turn) => {
    const body = { model: "sim/acme/echo", messages: [...messages, ...turn] };
    const [, answer, result] = parseChatCompletion(body, defaultLimits).request.messages;
    expect(answer).toMatchObject({ role: "assistant", tool_calls: [toolCall] });
    expect(answer?.role === "assistant" && (answer.content ?? "")).toBe("");
    expect(result).toEqual(toolResult);
  });
});
