import { createHash } from "node:crypto";
import type { LanguageModelV4StreamPart } from "@ai-sdk/provider";
import {
  APICallError,
  LoadAPIKeyError,
  NoSuchModelError,
  UnsupportedFunctionalityError,
} from "@ai-sdk/provider";
import { convertArrayToReadableStream, MockLanguageModelV3, MockLanguageModelV4 } from "ai/test";
import { describe, expect, it } from "vitest";
import { aiSdk } from "../src/index.ts";
import { callOf, callProvider, saidBy } from "./drive.ts";

type Parts = readonly LanguageModelV4StreamPart[];
type Finish = Extract<LanguageModelV4StreamPart, { type: "finish" }>;

const usage: Finish["usage"] = {
  inputTokens: { total: 12, noCache: 8, cacheRead: 4, cacheWrite: 0 },
  outputTokens: { total: 5, text: 3, reasoning: 2 },
};
const finish = (unified: Finish["finishReason"]["unified"], raw?: string): Finish => ({
  type: "finish",
  finishReason: { unified, raw },
  usage,
});
const text = (delta: string) => ({ type: "text-delta" as const, id: "1", delta });

function modelOf(parts: Parts): MockLanguageModelV4 {
  return new MockLanguageModelV4({
    provider: "mock.chat",
    modelId: "model",
    doStream: async () => ({ stream: convertArrayToReadableStream([...parts]) }),
  });
}

const streamed = (...parts: Parts) => callProvider(modelOf(parts));
const kindsOf = async (...parts: Parts) => (await streamed(...parts)).events.slice(1);

describe("the parts of a model's stream", () => {
  it("become events: the answer's id, reasoning, text, usage and the reason it ended", async () => {
    const events = await kindsOf(
      { type: "stream-start", warnings: [] },
      { type: "response-metadata", id: "answer-1", modelId: "model-2026" },
      { type: "reasoning-start", id: "0" },
      { type: "reasoning-delta", id: "0", delta: "Hm." },
      { type: "reasoning-end", id: "0" },
      { type: "text-start", id: "1" },
      text(""),
      text("Hello"),
      { type: "text-end", id: "1" },
      finish("stop", "end_turn"),
    );
    expect(events).toEqual([
      { type: "answer-started", providerRequestId: "answer-1", providerModel: "model-2026" },
      { type: "reasoning-delta", text: "Hm." },
      {
        type: "state",
        fields: { reasoning_details: [{ type: "reasoning.text", index: 0, text: "Hm." }] },
      },
      { type: "text-delta", text: "Hello" },
      {
        type: "usage",
        usage: {
          promptTokens: 12,
          completionTokens: 5,
          cachedTokens: 4,
          cacheWriteTokens: 0,
          reasoningTokens: 2,
        },
      },
      { type: "finish", reason: "stop" },
    ]);
  });

  it("keep signed content: thinking, hidden thinking and tool calls", async () => {
    const events = await kindsOf(
      { type: "reasoning-start", id: "0" },
      { type: "reasoning-delta", id: "0", delta: "Hm." },
      {
        type: "reasoning-delta",
        id: "0",
        delta: "",
        providerMetadata: { anthropic: { signature: "sig" } },
      },
      { type: "reasoning-end", id: "0" },
      {
        type: "reasoning-start",
        id: "1",
        providerMetadata: { anthropic: { redactedData: "hidden" } },
      },
      { type: "reasoning-end", id: "1" },
      {
        type: "tool-call",
        toolCallId: "a",
        toolName: "a",
        input: "{}",
        providerMetadata: { google: { thoughtSignature: "thought" } },
      },
      {
        type: "tool-call",
        toolCallId: "b",
        toolName: "b",
        input: "{}",
        providerMetadata: { openai: { itemId: "fc_1" } },
      },
      finish("tool-calls", "tool_use"),
    );
    expect(events.filter(({ type }) => type === "state")).toEqual([
      {
        type: "state",
        fields: {
          reasoning_details: [
            {
              type: "reasoning.text",
              index: 0,
              text: "Hm.",
              data: '{"anthropic":{"signature":"sig"}}',
            },
          ],
        },
      },
      {
        type: "state",
        fields: {
          reasoning_details: [
            {
              type: "reasoning.encrypted",
              index: 1,
              data: '{"anthropic":{"redactedData":"hidden"}}',
            },
          ],
        },
      },
      {
        type: "state",
        index: 0,
        fields: { extra_content: { google: { thought_signature: "thought" } } },
      },
      {
        type: "state",
        index: 1,
        fields: { extra_content: { provider_metadata: '{"openai":{"itemId":"fc_1"}}' } },
      },
    ]);
  });

  it("keep tool calls separate if they overlap, arrive whole or arrive in pieces that are not JSON", async () => {
    const call = (toolCallId: string, input: string) => ({
      type: "tool-call" as const,
      toolCallId,
      toolName: toolCallId,
      input,
    });
    const events = await kindsOf(
      { type: "tool-input-start", id: "a", toolName: "a" },
      { type: "tool-input-start", id: "b", toolName: "b" },
      { type: "tool-input-delta", id: "a", delta: '{"x":' },
      { type: "tool-input-delta", id: "b", delta: "{}" },
      { type: "tool-input-delta", id: "a", delta: "1}" },
      call("a", '{"x":1}'),
      call("b", "{}"),
      call("whole", '{"y":2}'),
      { type: "tool-input-start", id: "text", toolName: "text", inputEncoding: "text" },
      { type: "tool-input-delta", id: "text", delta: "raw" },
      call("text", '"raw"'),
      { type: "tool-input-start", id: "server", toolName: "search", providerExecuted: true },
      { ...call("server", "{}"), providerExecuted: true },
      finish("tool-calls"),
    );
    const started = (index: number, id: string) => ({
      type: "tool-call-started",
      index,
      id,
      name: id,
    });
    const written = (index: number, part: string) => ({
      type: "tool-call-delta",
      index,
      arguments: part,
    });
    expect(events.slice(1, -2)).toEqual([
      started(0, "a"),
      started(1, "b"),
      written(0, '{"x":'),
      written(1, "{}"),
      written(0, "1}"),
      started(2, "whole"),
      written(2, '{"y":2}'),
      started(3, "text"),
      written(3, '"raw"'),
    ]);
    expect(events.at(-1)).toEqual({ type: "finish", reason: "tool_calls" });
  });

  it.each([
    ["stop", "stop"],
    ["length", "length"],
    ["tool-calls", "tool_calls"],
    ["content-filter", "content_filter"],
  ] as const)("end with %s as %s", async (unified, reason) => {
    expect((await kindsOf(text("Hi"), finish(unified, "raw"))).at(-1)).toEqual({
      type: "finish",
      reason,
    });
  });

  it.each([
    ["interrupted", undefined, "answer_cut"],
    ["other", undefined, "answer_cut"],
    ["other", "pause", "unknown_finish_reason"],
    ["error", "MALFORMED_FUNCTION_CALL", "upstream_error"],
  ] as const)("are not a complete answer with %s (%s)", async (unified, raw, reason) => {
    const { events, thrown } = await streamed(text("Half"), finish(unified, raw));
    expect(events.some(({ type }) => type === "finish")).toBe(false);
    expect(saidBy(thrown)).toEqual({ reason, delivery: "unknown", status: 200 });
  });

  it("fail without an end, with a file or with a tool call that has no name", async () => {
    const endless = await streamed(text("Half"));
    expect(saidBy(endless.thrown)).toMatchObject({ reason: "answer_cut", delivery: "unknown" });
    const data = { type: "data" as const, data: "AAAA" };
    const file = await streamed({ type: "file", mediaType: "image/png", data }, finish("stop"));
    expect(saidBy(file.thrown)).toMatchObject({ reason: "unsupported_content" });
    const nameless = await streamed({ type: "tool-input-start", id: "a", toolName: "" });
    expect(saidBy(nameless.thrown)).toMatchObject({ reason: "invalid_event" });
  });

  it("drop invalid usage figures", async () => {
    const broken = { ...finish("stop"), usage: structuredClone(usage) };
    broken.usage.inputTokens.total = Number.NaN;
    broken.usage.outputTokens.reasoning = 6;
    const events = await kindsOf(text("Hi"), broken);
    expect(events.at(-2)).toEqual({ type: "usage", usage: { completionTokens: 5 } });
    broken.usage.outputTokens = { total: undefined, text: undefined, reasoning: undefined };
    expect((await kindsOf(text("Hi"), broken)).some(({ type }) => type === "usage")).toBe(false);
  });
});

describe("a plain answer", () => {
  const plain = (model: MockLanguageModelV4 | MockLanguageModelV3) =>
    callProvider(model, { stream: false });

  it("becomes the same events", async () => {
    const { events } = await plain(
      new MockLanguageModelV4({
        modelId: "model",
        doGenerate: {
          content: [
            { type: "reasoning", text: "Hm." },
            { type: "text", text: "Hello" },
            { type: "tool-call", toolCallId: "a", toolName: "add", input: "{}" },
          ],
          finishReason: { unified: "tool-calls", raw: "tool_use" },
          usage,
          response: { id: "answer-1", modelId: "model-2026" },
          warnings: [],
        },
      }),
    );
    expect(events.map(({ type }) => type)).toEqual([
      "request-sent",
      "answer-started",
      "reasoning-delta",
      "state",
      "text-delta",
      "tool-call-started",
      "tool-call-delta",
      "usage",
      "finish",
    ]);
  });
});

describe("a model of the older version", () => {
  it("gets its files in the older form, and no reasoning effort", async () => {
    const model = new MockLanguageModelV3({
      modelId: "model",
      doStream: async () => ({
        stream: convertArrayToReadableStream([
          text("Red."),
          { type: "finish", finishReason: { unified: "stop", raw: "stop" }, usage },
        ]),
      }),
    });
    const image = "data:image/png;base64,iVBORw0KGgo=";
    const { events, thrown } = await callProvider(model, {
      request: {
        messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: image } }] }],
        reasoningEffort: "low",
      },
    });
    expect(thrown).toBeNull();
    expect(events.at(-1)).toEqual({ type: "finish", reason: "stop" });
    const [options] = model.doStreamCalls;
    expect(options?.prompt).toEqual([
      {
        role: "user",
        content: [{ type: "file", mediaType: "image/png", data: "iVBORw0KGgo=" }],
      },
    ]);
    expect(options).not.toHaveProperty("reasoning");
  });
});

describe("the short form", () => {
  it("is recorded with the AI SDK provider's name and options", async () => {
    const { events } = await streamed(text("Hi"), finish("stop"));
    const asked = {
      model: "model",
      stream: true,
      prompt: [{ role: "user", content: [{ type: "text", text: "Hi" }] }],
    };
    expect(events[0]).toEqual({
      type: "request-sent",
      host: "mock.chat",
      bodySha256: createHash("sha256").update(JSON.stringify(asked)).digest("hex"),
    });
  });

  it("does not call the model before it announces its request", async () => {
    const model = modelOf([finish("stop")]);
    const provider = aiSdk(model);
    for await (const _ of provider.complete(callOf())) break;
    expect(model.doStreamCalls).toEqual([]);
  });

  it("answers to the model's own name only", async () => {
    const model = modelOf([text("Hi"), finish("stop")]);
    const { thrown } = await callProvider(model, { upstreamName: "cheaper" });
    expect(saidBy(thrown)).toMatchObject({ status: 404, delivery: "answered" });
    expect(model.doStreamCalls).toEqual([]);
    expect((await callProvider(model, { model: "vendor/alias" })).thrown).toBeNull();
  });

  it("asks a provider of the AI SDK for the upstream name", async () => {
    const asked: string[] = [];
    const provider = {
      languageModel(modelId: string) {
        asked.push(modelId);
        return modelOf([text("Hi"), finish("stop")]);
      },
    };
    const call = { model: "meta/llama", upstreamName: "llama/large" };
    expect((await callProvider(provider, call)).thrown).toBeNull();
    expect(asked).toEqual(["llama/large"]);
  });

  it("sends nothing if the host's options are a promise, which the AI SDK would ignore", async () => {
    const model = modelOf([text("Hi"), finish("stop")]);
    // An unhandled rejection would end the process, and this test run.
    const fail = () => Promise.reject(new Error("a host's own"));
    for (const given of [() => Promise.resolve({}), fail]) {
      const { thrown } = await callProvider(model, {}, { providerOptions: () => Object(given()) });
      expect(saidBy(thrown)).toMatchObject({ reason: "misconfigured", delivery: "not-sent" });
    }
    expect(model.doStreamCalls).toEqual([]);
  });

  it("stops when the call is aborted, even if the model ignores the signal", async () => {
    const caller = new AbortController();
    const reason = new Error("the caller left");
    const deaf = new MockLanguageModelV4({
      modelId: "model",
      doStream: async () => {
        setImmediate(() => caller.abort(reason));
        return { stream: new ReadableStream() };
      },
    });
    const { thrown } = await callProvider(deaf, { signal: caller.signal });
    expect(thrown).toBe(reason);
    expect(deaf.doStreamCalls[0]?.abortSignal?.aborted).toBe(true);
  });
});

describe("an error of a model", () => {
  const failing = (error: unknown) =>
    callProvider(
      new MockLanguageModelV4({ modelId: "model", doStream: () => Promise.reject(error) }),
    );
  const apiCall = (details: Partial<ConstructorParameters<typeof APICallError>[0]>) =>
    new APICallError({
      message: "sk-secret of acme",
      url: "https://api.test/v1",
      requestBodyValues: {},
      ...details,
    });

  it("keeps its status and retry delay, but not its text", async () => {
    const { thrown } = await failing(
      apiCall({
        statusCode: 429,
        responseHeaders: { "retry-after": "7" },
        data: { error: { code: "rate_limited", message: "sk-secret of acme" } },
      }),
    );
    expect(thrown).toMatchObject({
      reason: "status_429",
      delivery: "answered",
      status: 429,
      retryAfterMs: 7_000,
      code: "rate_limited",
    });
    expect(JSON.stringify([String(thrown), thrown])).not.toContain("sk-secret");
  });

  it("means not sent without a connection, and unknown after a broken one", async () => {
    const network = (code: string) =>
      apiCall({
        cause: new TypeError("fetch failed", { cause: Object.assign(new Error(), { code }) }),
      });
    expect(saidBy((await failing(network("ECONNREFUSED"))).thrown)).toEqual({
      reason: "connection_refused",
      delivery: "not-sent",
      status: null,
    });
    expect(saidBy((await failing(network("ECONNRESET"))).thrown)).toEqual({
      reason: "connection_reset",
      delivery: "unknown",
      status: null,
    });
  });

  it("means unknown without any detail", async () => {
    for (const error of [new Error("sk-secret"), "sk-secret", undefined])
      expect(saidBy((await failing(error)).thrown)).toMatchObject({ delivery: "unknown" });
  });

  it.each([
    [new UnsupportedFunctionalityError({ functionality: "images" }), 400, "answered"],
    [new NoSuchModelError({ modelId: "model", modelType: "languageModel" }), 404, "answered"],
    [new LoadAPIKeyError({ message: "sk-secret" }), null, "not-sent"],
    [new Error("sk-secret"), null, "not-sent"],
  ] as const)("means not sent if it precedes the request: %s", async (error, status, delivery) => {
    const { thrown, events } = await callProvider(
      {
        languageModel: () => {
          throw error;
        },
      },
      {},
    );
    expect(events).toEqual([]);
    expect(saidBy(thrown)).toMatchObject({ status, delivery });
    expect(String(thrown)).not.toContain("sk-secret");
  });
});
