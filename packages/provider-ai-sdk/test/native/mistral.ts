import { createMistral } from "@ai-sdk/mistral";
import { canary } from "@tollgate/conformance/provider-contract";
import { events, json } from "./answers.ts";
import { said, tool, type Vendor } from "./vendor.ts";

const usage = { prompt_tokens: 12, completion_tokens: 5, total_tokens: 17 };
const head = { id: "cmpl-1", created: 1_767_225_600, model: "mistral-test" };
const chunk = (delta: object, finish_reason: string | null = null) => ({
  ...head,
  object: "chat.completion.chunk",
  choices: [{ index: 0, delta, finish_reason }],
  ...(finish_reason === null ? {} : { usage }),
});
const whole = (message: object, finish_reason: string) =>
  json(200, {
    ...head,
    object: "chat.completion",
    choices: [{ index: 0, message: { role: "assistant", ...message }, finish_reason }],
    usage,
  });
const call = {
  id: "call12345",
  function: { name: tool.name, arguments: JSON.stringify(tool.input) },
};
const expectedUsage = { promptTokens: 12, completionTokens: 5 };
const error = { object: "error", message: canary, type: `Type ${canary}`, param: null, code: null };
const half = chunk({ role: "assistant", content: "Half" });

/** Mistral's own chat protocol. */
export const mistral: Vendor = {
  name: "Mistral",
  connect:
    (url) =>
    ({ fetch, credential }) =>
      createMistral({ baseURL: `${url}/v1`, apiKey: credential, fetch }),
  fixtures: {
    text: {
      stream: withDone(
        ...said.map((content) => chunk({ role: "assistant", content })),
        chunk({ content: "" }, "stop"),
      ),
      plain: whole({ content: said.join("") }, "stop"),
      expected: { text: said.join(""), toolCalls: [], usage: expectedUsage, finishReason: "stop" },
    },
    toolCall: {
      stream: withDone(chunk({ role: "assistant", content: "", tool_calls: [call] }, "tool_calls")),
      plain: whole({ content: "", tool_calls: [call] }, "tool_calls"),
      expected: {
        text: null,
        toolCalls: [{ name: tool.name, arguments: JSON.stringify(tool.input) }],
        usage: expectedUsage,
        finishReason: "tool_calls",
      },
    },
    cut: events(half),
    failing: events(half, error),
    error: json(503, error),
  },
};

function withDone(...list: readonly object[]) {
  const answer = events(...list);
  return { ...answer, body: `${answer.body}data: [DONE]\n\n` };
}
