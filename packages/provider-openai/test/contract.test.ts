import {
  canary,
  describeProviderContract,
  type NativeAnswer,
} from "@tollgate/conformance/provider-contract";
import { openaiCompatible } from "../src/index.ts";
import { fixture } from "./fixture.ts";

describeProviderContract("openaiCompatible", {
  create: ({ url, connection, credential }) =>
    openaiCompatible({
      baseURL: `${url}/v1`,
      connection,
      ...(connection === "platform" ? { apiKey: credential } : {}),
    }),
  fixtures: {
    text: {
      stream: stream(fixture("standard.sse")),
      plain: json(200, fixture("standard.json")),
      expected: {
        text: "Grüße, 世界 🌍!",
        toolCalls: [],
        usage: {
          promptTokens: 12,
          completionTokens: 5,
          cachedTokens: 4,
          reasoningTokens: 0,
          audioInputTokens: 0,
          audioOutputTokens: 0,
        },
        finishReason: "stop",
      },
    },
    toolCall: {
      stream: stream(fixture("tool-calls.sse")),
      plain: json(200, fixture("tool-calls.json")),
      expected: {
        text: null,
        toolCalls: [{ name: "get_weather", arguments: '{"city":"Zürich"}' }],
        usage: { promptTokens: 12, completionTokens: 5 },
        finishReason: "tool_calls",
      },
    },
    cut: stream('data: {"choices":[{"delta":{"content":"Half an"}}]}\n\n'),
    failing: stream(
      'data: {"choices":[{"delta":{"content":"Half an"}}]}\n\n' +
        `data: {"error":{"message":"${canary}","code":"${canary} too"}}\n\n`,
    ),
    error: json(503, `{"error":{"message":"${canary}","code":"Code ${canary}"}}`),
  },
});

function stream(body: string): NativeAnswer {
  return { status: 200, contentType: "text/event-stream; charset=utf-8", body };
}

function json(status: number, body: string): NativeAnswer {
  return { status, contentType: "application/json", body };
}
