import { describe, expect, it } from "vitest";
import { defaultLimits } from "../../domain/limits.ts";
import { GatewayError, type GatewayErrorDetails } from "../../errors/gateway-error.ts";
import { parseResponse } from "./parse.ts";
import { type ResponseHead, responseBody, responseObject } from "./response-object.ts";

const head: ResponseHead = {
  id: "resp_0190a00000007000800000000000000a",
  createdAt: 1_795_166_679_999,
  model: "sim/acme/echo",
  sessionId: "0190a000-0000-7000-8000-000000000001",
  turnId: "0190a000-0000-7000-8000-000000000002",
  previousResponseId: null,
  namespaces: new Map(),
  store: true,
  echo: parseResponse({ model: "sim/acme/echo", input: "Hello" }, defaultLimits).echo,
};
const usage = { promptTokens: 12, completionTokens: 7, totalTokens: 19 };
const completion = {
  parts: [{ type: "text", text: "Hi" }],
  logprobs: [],
  finishReason: "stop",
  usage: {},
} as const;

describe("the response object", () => {
  it("has every field, in one order, byte by byte", () => {
    expect(responseBody(head, completion, usage, "stop", 1_795_166_680_001)).toBe(
      `{"id":"${head.id}","object":"response","created_at":1795166679,"completed_at":1795166680,"status":"completed","background":false,` +
        `"error":null,"incomplete_details":null,"instructions":null,"max_output_tokens":null,"max_tool_calls":null,"model":"sim/acme/echo",` +
        `"output":[{"id":"msg_0190a00000007000800000000000000a_o0","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hi","annotations":[],"logprobs":[]}]}],` +
        `"parallel_tool_calls":true,"previous_response_id":null,"prompt_cache_key":null,"reasoning":{"effort":null,"summary":null},` +
        `"safety_identifier":null,"service_tier":"default","store":true,"temperature":1,"text":{"format":{"type":"text"},"verbosity":"medium"},` +
        `"tool_choice":"auto","tools":[],"top_logprobs":0,"top_p":1,"presence_penalty":0,"frequency_penalty":0,"truncation":"disabled",` +
        `"usage":{"input_tokens":12,"input_tokens_details":{"cached_tokens":0,"cache_write_tokens":0},"output_tokens":7,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":19},` +
        `"metadata":{},"session_id":"${head.sessionId}","turn_id":"${head.turnId}"}`,
    );
  });

  it("repeats the request", () => {
    const body = { model: "sim/acme/echo", input: "Hello", user: "u", metadata: { a: "b" } };
    const { echo } = parseResponse(body, defaultLimits);
    const object = responseObject(
      { ...head, echo, store: false, previousResponseId: "resp_1" },
      { status: "in_progress" },
    );
    expect(object).toMatchObject({
      ...echo,
      user: "u",
      metadata: { a: "b" },
      store: false,
      previous_response_id: "resp_1",
    });
  });

  it("shows the details of usage that the provider reported", () => {
    const body = responseBody(
      head,
      completion,
      { ...usage, cachedTokens: 3, reasoningTokens: 4 },
      "stop",
      0,
    );
    expect(JSON.parse(body).usage).toMatchObject({
      input_tokens_details: { cached_tokens: 3 },
      output_tokens_details: { reasoning_tokens: 4 },
    });
  });

  it.each([
    ["length", "max_output_tokens"],
    ["content_filter", "content_filter"],
  ] as const)("is incomplete if the answer ended by %s", (finishReason, reason) => {
    const cut = { ...completion, finishReason };
    expect(
      JSON.parse(responseBody(head, cut, usage, finishReason, 1_795_166_680_001)),
    ).toMatchObject({
      status: "incomplete",
      completed_at: null,
      incomplete_details: { reason },
      output: [{ status: "incomplete" }],
      usage: { total_tokens: 19 },
    });
  });

  it("has neither output nor usage while it is in progress", () => {
    const object = responseObject(head, { status: "in_progress" });
    expect(object).toMatchObject({
      status: "in_progress",
      output: [],
      usage: null,
      completed_at: null,
    });
  });

  it.each([
    ["upstream_error", {}, "server_error"],
    ["internal_error", {}, "server_error"],
    ["overloaded", {}, "server_error"],
    ["rate_limit_exceeded", {}, "rate_limit_exceeded"],
    ["budget_exceeded", {}, "rate_limit_exceeded"],
    ["upstream_rejected", { wireCode: "string_above_max_length" }, "invalid_prompt"],
  ] as const)(
    "has an error code that clients know if it failed by %s",
    (code, details: GatewayErrorDetails, known) => {
      const error = new GatewayError(code, "It failed.", details);
      expect(responseObject(head, { status: "failed", output: [], error })).toMatchObject({
        status: "failed",
        error: { code: known, message: "It failed." },
        usage: null,
        completed_at: null,
      });
    },
  );
});
