import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { canary } from "@tollgate/conformance/provider-contract";
import { events, json } from "./answers.ts";
import { said, tool, type Vendor } from "./vendor.ts";

const usageMetadata = {
  promptTokenCount: 12,
  cachedContentTokenCount: 4,
  candidatesTokenCount: 3,
  thoughtsTokenCount: 2,
  totalTokenCount: 17,
};
const chunk = (parts: readonly object[], finishReason?: string) => ({
  candidates: [{ content: { parts, role: "model" }, finishReason, index: 0 }],
  usageMetadata,
  modelVersion: "gemini-test",
  responseId: "response-1",
});
const call = { functionCall: { name: tool.name, args: tool.input } };
const expectedUsage = {
  promptTokens: 12,
  completionTokens: 5,
  cachedTokens: 4,
  reasoningTokens: 2,
};
const error = { error: { code: 503, message: canary, status: `STATUS ${canary}` } };

/** The Gemini protocol. */
export const google: Vendor = {
  name: "Google",
  connect:
    (url) =>
    ({ fetch, credential }) =>
      createGoogleGenerativeAI({ baseURL: `${url}/v1beta`, apiKey: credential, fetch }),
  fixtures: {
    text: {
      stream: events(
        ...said.map((text, index) =>
          chunk([{ text }], index === said.length - 1 ? "STOP" : undefined),
        ),
      ),
      plain: json(200, chunk([{ text: said.join("") }], "STOP")),
      expected: { text: said.join(""), toolCalls: [], usage: expectedUsage, finishReason: "stop" },
    },
    toolCall: {
      stream: events(chunk([call]), chunk([], "STOP")),
      plain: json(200, chunk([call], "STOP")),
      expected: {
        text: null,
        toolCalls: [{ name: tool.name, arguments: JSON.stringify(tool.input) }],
        usage: expectedUsage,
        finishReason: "tool_calls",
      },
    },
    cut: events(chunk([{ text: "Half" }])),
    failing: events(chunk([{ text: "Half" }]), error),
    error: json(503, error),
  },
};
