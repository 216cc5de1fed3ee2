import { createOpenAI } from "@ai-sdk/openai";
import { OpenAIEmbeddings } from "@langchain/openai";
import { createGateway } from "@tollgate/core";
import type { Store } from "@tollgate/core/store";
import { serve } from "@tollgate/node";
import { openaiCompatible } from "@tollgate/provider-openai";
import { memoryStore } from "@tollgate/store-memory";
import { postgresStore } from "@tollgate/store-postgres";
import { sqliteStore } from "@tollgate/store-sqlite";
import { type RunningPostgres, startPostgres } from "@tollgate/testing/postgres";
import { embedMany } from "ai";
import OpenAI from "openai";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { serveUpstream } from "./upstreams/upstream-server.ts";

const organizationId = "acme";
const model = "mock/openai/embed";
const texts = ["tea", "coffee"];
const asked = z.object({ input: z.array(z.string()), encoding_format: z.literal("base64") });

interface Target {
  readonly baseURL: string;
  readonly apiKey: string;
}

/** How each client gets the vectors of the texts. */
const clients = {
  openai: async (target: Target) => {
    const sdk = new OpenAI({ ...target, maxRetries: 0 });
    const { data } = await sdk.embeddings.create({ model, input: texts });
    return data.map(({ embedding }) => embedding);
  },
  "@ai-sdk/openai": async (target: Target) => {
    const embedding = createOpenAI(target).embeddingModel(model);
    return (await embedMany({ model: embedding, values: texts, maxRetries: 0 })).embeddings;
  },
  "@langchain/openai": ({ baseURL, apiKey }: Target) =>
    new OpenAIEmbeddings({
      model,
      apiKey,
      maxRetries: 0,
      configuration: { baseURL },
    }).embedDocuments(texts),
} as const;

/** One vector for each text: its length, and a half. Two tokens are one text. */
function answerOf(body: unknown) {
  const { input } = asked.parse(body);
  const data = input.map(({ length }, index) => ({
    object: "embedding",
    index,
    embedding: Buffer.from(Float32Array.of(length, 0.5).buffer).toString("base64"),
  }));
  const tokens = 2 * input.length;
  const usage = { prompt_tokens: tokens, total_tokens: tokens };
  return { json: { object: "list", data, model: "embed-1", usage } };
}

let postgres: RunningPostgres | undefined;
beforeAll(async () => {
  postgres = await startPostgres();
}, 60_000);
afterAll(() => postgres?.stop());

const stores: Readonly<Record<string, () => Store>> = {
  memoryStore,
  sqliteStore: () => sqliteStore({ filename: ":memory:" }),
  postgresStore: () => postgresStore({ url: postgres?.url ?? "" }, { schema: "embeddings" }),
};

it.each(Object.entries(stores))("embeds texts with every client on %s", async (_store, open) => {
  const upstream = await serveUpstream("/v1/embeddings", answerOf);
  const models = { "openai/embed": { input: "0.02", output: 0 } };
  const mock = openaiCompatible({ baseURL: `${upstream.url}/v1`, apiKey: null, models });
  const gateway = createGateway({ store: open(), providers: { mock } });
  const server = await serve(gateway, { port: 0 });
  onTestFinished(async () => {
    await server.close();
    await upstream.stop();
  });
  const key = { organizationId, userId: "ada", label: "laptop" };
  const { secret: apiKey } = await gateway.keys.create(key);
  for (const [name, embed] of Object.entries(clients))
    expect(await embed({ baseURL: `${server.url}/v1`, apiKey }), name).toEqual([
      [3, 0.5],
      [6, 0.5],
    ]);
  expect(upstream.refusals()).toEqual([]);
  const { data } = await gateway.activity.list({ organizationId });
  // Four tokens at 20 nanodollars.
  const call = { endpoint: "embeddings", sessionId: null, promptTokens: 4, costNanoUsd: 80 };
  expect(data).toMatchObject(Object.keys(clients).map(() => call));
  expect((await gateway.sessions.list({ organizationId })).data).toEqual([]);
});
