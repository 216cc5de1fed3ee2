import {
  canary,
  describeProviderContract,
  type NativeAnswer,
} from "@tollgate/conformance/provider-contract";
import { anthropic } from "../src/index.ts";
import { event, fixture } from "./drive.ts";

const usage = {
  promptTokens: 12,
  completionTokens: 5,
  cachedTokens: 4,
  cacheWriteTokens: 2,
  cacheWrite1hTokens: 1,
  reasoningTokens: 0,
  serviceTier: "standard",
};
const halfAn =
  event({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }) +
  event({
    type: "content_block_delta",
    index: 0,
    delta: { type: "text_delta", text: "Half an" },
  });

describeProviderContract("anthropic", {
  create: ({ url, connection, credential }) =>
    anthropic({
      baseURL: `${url}/v1`,
      connection,
      ...(connection === "platform" ? { apiKey: credential } : {}),
    }),
  fixtures: {
    text: {
      stream: stream(fixture("text.sse")),
      plain: json(200, fixture("text.json")),
      expected: { text: "Grüße, 世界 🌍!", toolCalls: [], usage, finishReason: "stop" },
    },
    toolCall: {
      stream: stream(fixture("tool-use.sse")),
      plain: json(200, fixture("tool-use.json")),
      expected: {
        text: null,
        toolCalls: [{ name: "get_weather", arguments: '{"city":"Zürich"}' }],
        usage,
        finishReason: "tool_calls",
      },
    },
    cut: stream(halfAn),
    failing: stream(
      `${halfAn}event: error\ndata: {"type":"error","error":{"type":"Type ${canary}","message":"${canary} too"}}\n\n`,
    ),
    error: json(529, `{"type":"error","error":{"type":"Type ${canary}","message":"${canary}"}}`),
  },
});

function stream(body: string): NativeAnswer {
  return { status: 200, contentType: "text/event-stream; charset=utf-8", body };
}

function json(status: number, body: string): NativeAnswer {
  return { status, contentType: "application/json", body };
}
