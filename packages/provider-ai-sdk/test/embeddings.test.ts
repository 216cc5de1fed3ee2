import { createCohere } from "@ai-sdk/cohere";
import { createMistral } from "@ai-sdk/mistral";
import type { EmbeddingModelV4 } from "@ai-sdk/provider";
import type { CompletionEvent, EmbeddingCall, Provider } from "@tollgate/core/provider";
import { createTestGateway } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { type AiSdkOptions, aiSdk, type Connect } from "../src/index.ts";
import { answer, callOf, saidBy, startUpstream } from "./drive.ts";

type Source = Parameters<typeof aiSdk>[0];

/** One embeddings call of a fresh provider: its events and its error. */
async function embedded(
  source: Source,
  { inputs = ["a", "b"], ...request }: Partial<EmbeddingCall["request"]> = {},
  options: AiSdkOptions = {},
) {
  const provider = aiSdk(source, options);
  const events: CompletionEvent[] = [];
  const call: EmbeddingCall = { ...callOf(), request: { inputs, ...request } };
  try {
    for await (const batch of provider.embed?.(call) ?? []) events.push(...batch);
    return { events, thrown: null };
  } catch (thrown) {
    return { events, thrown };
  } finally {
    await provider.close();
  }
}

const mistral =
  (url: string): Connect =>
  ({ fetch, credential }) =>
    createMistral({ baseURL: `${url}/v1`, apiKey: credential, fetch });

const json = (body: unknown) => answer("application/json", JSON.stringify(body));
const vectors = {
  object: "list",
  data: [
    { object: "embedding", index: 0, embedding: [0.25, 1] },
    { object: "embedding", index: 1, embedding: [0.5, 2] },
  ],
  usage: { prompt_tokens: 4, total_tokens: 4 },
};
const apiKey = "sk-platform-secret";
const ofVectors = [
  { type: "answer-started" },
  { type: "embedding", index: 0, vector: [0.25, 1] },
  { type: "embedding", index: 1, vector: [0.5, 2] },
  { type: "usage", usage: { promptTokens: 4, completionTokens: 0 } },
  { type: "finish", reason: "stop" },
];

const model = (over: Partial<EmbeddingModelV4> = {}): EmbeddingModelV4 => ({
  specificationVersion: "v4",
  provider: "mock",
  modelId: "model",
  maxEmbeddingsPerCall: 2,
  supportsParallelCalls: true,
  doEmbed: async ({ values }) => ({
    embeddings: values.map((_, at) => [at]),
    usage: { tokens: 7 },
    warnings: [],
  }),
  ...over,
});

describe("embedding models of the AI SDK", () => {
  it("are asked with one recorded request of Tollgate's own fetch", async () => {
    const upstream = await startUpstream(({ send }) => send(json(vectors)));
    const { events, thrown } = await embedded(mistral(upstream.url), {}, { apiKey });
    expect(thrown).toBeNull();
    const [sent, ...rest] = events;
    expect(sent).toMatchObject({ type: "request-sent", host: new URL(upstream.url).host });
    expect(rest).toEqual(ofVectors);
    expect(upstream.requests).toHaveLength(1);
    expect(upstream.requests[0]?.head).toMatch(/^POST \/v1\/embeddings HTTP/);
    expect(JSON.parse(upstream.requests[0]?.body ?? "")).toMatchObject({
      model: "model",
      input: ["a", "b"],
    });
  });

  it("get the settings that the host derives from a request", async () => {
    const seen: unknown[] = [];
    const doEmbed: EmbeddingModelV4["doEmbed"] = async ({ providerOptions, values }) => {
      seen.push(providerOptions, values);
      return { embeddings: [], warnings: [] };
    };
    const embeddingOptions: AiSdkOptions["embeddingOptions"] = ({ dimensions = 0 }) => ({
      google: { outputDimensionality: dimensions },
    });
    await embedded(model({ doEmbed }), { dimensions: 2 }, { embeddingOptions });
    expect(seen).toEqual([{ google: { outputDimensionality: 2 } }, ["a", "b"]]);
  });

  it("answer POST /v1/embeddings of a gateway, with their price", async () => {
    const found = {
      id: "1",
      texts: ["a"],
      embeddings: { float: [[0.5, -1]] },
      meta: { billed_units: { input_tokens: 12 } },
    };
    const upstream = await startUpstream(({ send }) => send(json(found)));
    const cohere = aiSdk(
      ({ fetch, credential }) => createCohere({ baseURL: upstream.url, apiKey: credential, fetch }),
      { apiKey, vendor: "cohere", models: { "cohere/embed-v4": { input: "0.12", output: 0 } } },
    );
    const { gateway, key } = await createTestGateway({ providers: { cohere } });
    const answered = await gateway.fetch("http://in-process/v1/embeddings", {
      method: "POST",
      headers: { authorization: `Bearer ${key.secret}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "cohere/cohere/embed-v4", input: "a" }),
    });
    expect(await answered.json()).toMatchObject({
      data: [{ object: "embedding", index: 0, embedding: [0.5, -1] }],
      usage: { prompt_tokens: 12, total_tokens: 12 },
    });
    const steps = await gateway.steps.list({ organizationId: key.organizationId });
    // 12 tokens at 120 nanodollars.
    expect(steps.data).toMatchObject([{ promptTokens: 12, costNanoUsd: 1_440, sessionId: null }]);
    await gateway.close();
  });

  it("may be passed alone, and accept only their own name", async () => {
    const { events } = await embedded(model());
    expect(events).toMatchObject([
      { type: "request-sent", host: "mock" },
      { type: "answer-started" },
      { index: 0, vector: [0] },
      { index: 1, vector: [1] },
      { usage: { promptTokens: 7, completionTokens: 0 } },
      { type: "finish" },
    ]);
    const { thrown } = await embedded(model({ modelId: "other" }));
    expect(saidBy(thrown)).toMatchObject({ reason: "unsupported_request", status: 404 });
    const provider = aiSdk(model());
    const complete = provider.complete(callOf())[Symbol.asyncIterator]().next();
    await expect(complete).rejects.toMatchObject({ reason: "unsupported_request", status: 404 });
  });

  it("report no usage that isn't a number", async () => {
    const doEmbed: EmbeddingModelV4["doEmbed"] = async () => ({
      embeddings: [[1], [2]],
      usage: { tokens: Number.NaN },
      warnings: [],
    });
    const { events } = await embedded(model({ doEmbed }));
    expect(events.map(({ type }) => type)).not.toContain("usage");
  });

  it.each<[string, Partial<EmbeddingCall["request"]>, string]>([
    ["token ids", { inputs: [[1, 2]] }, "input"],
    ["dimensions without settings for them", { dimensions: 8 }, "dimensions"],
    ["more inputs than one request takes", { inputs: ["a", "b", "c"] }, "input"],
  ])("reject %s without a request", async (_name, request, param) => {
    let asked = 0;
    const doEmbed: EmbeddingModelV4["doEmbed"] = async () => {
      asked++;
      return { embeddings: [], warnings: [] };
    };
    const { thrown } = await embedded(model({ doEmbed }), request);
    expect(thrown).toMatchObject({ reason: "unsupported_request", status: 400, param });
    expect(asked).toBe(0);
  });

  it("fail with the upstream's status, without its text", async () => {
    const failing =
      "HTTP/1.1 429 Busy\r\ncontent-type: application/json\r\ncontent-length: 2\r\nretry-after: 3\r\n\r\n{}";
    const upstream = await startUpstream(({ send }) => send(failing));
    const { thrown } = await embedded(mistral(upstream.url), {}, { apiKey });
    expect(thrown).toMatchObject({ reason: "status_429", status: 429, retryAfterMs: 3_000 });
  });

  it("are missing from a language model, and from a provider without them", () => {
    const languageModel = { doGenerate: () => {}, doStream: () => {}, specificationVersion: "v4" };
    const alone: Provider = Reflect.apply(aiSdk, undefined, [languageModel]);
    expect(alone.embed).toBeUndefined();
    const without = { languageModel: () => expect.fail("Nothing asked for a model.") };
    expect(aiSdk(without).embed).toBeUndefined();
    const { problems } = aiSdk(Reflect.apply(model, undefined, [{ specificationVersion: "v2" }]));
    expect(problems).toEqual(["the model must be of specification version v3 or v4"]);
  });
});
