import { createAnthropic } from "@ai-sdk/anthropic";
import Anthropic from "@anthropic-ai/sdk";
import { createGateway, type StepRecord } from "@tollgate/core";
import type { Provider } from "@tollgate/core/provider";
import type { Store } from "@tollgate/core/store";
import { serve } from "@tollgate/node";
import { anthropic } from "@tollgate/provider-anthropic";
import { memoryStore } from "@tollgate/store-memory";
import { postgresStore } from "@tollgate/store-postgres";
import { sqliteStore } from "@tollgate/store-sqlite";
import { messagesUpstream } from "@tollgate/testing";
import { type RunningPostgres, startPostgres } from "@tollgate/testing/postgres";
import { generateText, jsonSchema, type ModelMessage, stepCountIs, streamText, tool } from "ai";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { type Answer, upstreams } from "./claude-code/upstreams.ts";

const organizationId = "acme";
const model = "claude-sonnet-5";
const png =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";
const question = "How warm is it, and what do I wear?";
const lookUp = { description: "Looks up a fact", schema: { type: "object" as const } };
const thinkingBudget = 1_024;

interface Target {
  readonly url: string;
  readonly apiKey: string;
  readonly stream: boolean;
}

/** Asks the question, runs the tools, and then asks about an image. Returns the text of both answers. */
type Converse = (target: Target) => Promise<readonly string[]>;

const converseWithAiSdk: Converse = async ({ url, apiKey, stream }) => {
  const settings = {
    model: createAnthropic({ baseURL: `${url}/v1`, apiKey })(model),
    maxRetries: 0,
    maxOutputTokens: 2_048,
    stopWhen: stepCountIs(5),
    tools: {
      look_up: tool({
        description: lookUp.description,
        inputSchema: jsonSchema<unknown>(lookUp.schema),
        execute: async () => "18 degrees",
      }),
    },
    providerOptions: {
      anthropic: { thinking: { type: "enabled", budgetTokens: thinkingBudget } },
    },
  } as const;
  const image = { type: "file", data: Buffer.from(png, "base64"), mediaType: "image/png" } as const;
  const prompts: ModelMessage[] = [
    { role: "user", content: question },
    { role: "user", content: [{ type: "text", text: "Look at this" }, image] },
  ];
  const messages: ModelMessage[] = [];
  const answers: string[] = [];
  for (const prompt of prompts) {
    messages.push(prompt);
    const result = stream
      ? streamText({ ...settings, messages })
      : await generateText({ ...settings, messages });
    answers.push(await result.text);
    messages.push(...(await result.responseMessages));
  }
  return answers;
};

const converseWithSdk: Converse = async ({ url, apiKey, stream }) => {
  const client = new Anthropic({ baseURL: url, apiKey, maxRetries: 0 });
  const asked = {
    model,
    max_tokens: 2_048,
    thinking: { type: "enabled" as const, budget_tokens: thinkingBudget },
    tools: [{ name: "look_up", description: lookUp.description, input_schema: lookUp.schema }],
  };
  const source = { type: "base64", media_type: "image/png", data: png } as const;
  const prompts: Anthropic.MessageParam["content"][] = [
    question,
    [
      { type: "text", text: "Look at this" },
      { type: "image", source },
    ],
  ];
  const messages: Anthropic.MessageParam[] = [];
  const answers: string[] = [];
  for (let content = prompts.shift(); content !== undefined; ) {
    messages.push({ role: "user", content });
    const said = stream
      ? await client.messages.stream({ ...asked, messages }).finalMessage()
      : await client.messages.create({ ...asked, messages });
    messages.push({ role: "assistant", content: said.content });
    const results = said.content.flatMap((block) =>
      block.type === "tool_use"
        ? [{ type: "tool_result" as const, tool_use_id: block.id, content: "18 degrees" }]
        : [],
    );
    if (results.length === 0)
      answers.push(said.content.map((block) => (block.type === "text" ? block.text : "")).join(""));
    content = results.length > 0 ? results : prompts.shift();
  }
  return answers;
};

const clients = {
  "@ai-sdk/anthropic": converseWithAiSdk,
  "@anthropic-ai/sdk": converseWithSdk,
} as const;

let postgres: RunningPostgres | undefined;
beforeAll(async () => {
  postgres = await startPostgres();
}, 60_000);
afterAll(() => postgres?.stop());

let schemas = 0;
const stores: Readonly<Record<string, () => Store>> = {
  memoryStore,
  sqliteStore: () => sqliteStore({ filename: ":memory:" }),
  postgresStore: () =>
    postgresStore({ url: postgres?.url ?? "" }, { schema: `clients_${++schemas}` }),
};

const thinks = (round: number) => ({
  type: "thinking",
  thinking: `Round ${round}.`,
  signature: Buffer.from(`signed ${round}`).toString("base64"),
});
const calls = (round: number) => ({
  type: "tool_use",
  id: `toolu_${round}`,
  name: "look_up",
  input: { round },
});
const answers = ["18 degrees, so a coat.", "A red dot."];
const script = [
  [thinks(1), { type: "text", text: "Let me see." }, calls(1)],
  [thinks(2), calls(2)],
  ...answers.map((text) => [{ type: "text", text }]),
];

const runs = Object.keys(stores).flatMap((store) =>
  Object.keys(clients).flatMap((client) => [
    [client, store, false] as const,
    [client, store, true] as const,
  ]),
);

type Combination = (typeof runs)[number];

/** Runs a client against a gateway on a provider's model. Returns the Steps of its conversation, oldest first. */
async function converse([client, store, stream]: Combination, provider: Provider, target: string) {
  const gateway = createGateway({
    store: stores[store]?.() ?? memoryStore(),
    providers: { up: provider },
    aliases: { [model]: `up/${target}` },
  });
  onTestFinished(() => gateway.close());
  const server = await serve(gateway, { port: 0 });
  onTestFinished(() => server.close());
  const { secret } = await gateway.keys.create({ organizationId, userId: "ada", label: "app" });

  const said = clients[client as keyof typeof clients]({
    url: server.url,
    apiKey: secret,
    stream,
  });
  expect(await said).toEqual(answers);
  return (await gateway.steps.list({ organizationId })).data.toReversed();
}

function expectOneSession(steps: readonly StepRecord[]): void {
  const turns = [...new Set(steps.map(({ turnId }) => turnId))];
  expect(new Set(steps.map(({ sessionId }) => sessionId)).size).toBe(1);
  expect(steps.map((step) => [turns.indexOf(step.turnId), step.stepNumber])).toEqual([
    [0, 0],
    [0, 1],
    [0, 2],
    [1, 0],
  ]);
}

it.each(runs)("%s on %s, stream: %s, holds one conversation in one Session", async (...run) => {
  const upstream = await messagesUpstream((_, number) => ({ content: script[number - 1] ?? [] }));
  onTestFinished(() => upstream.close());
  const provider = anthropic({
    baseURL: upstream.url,
    apiKey: "sk-upstream",
    models: { [`anthropic/${model}`]: { input: 3, output: 15, maxOutputTokens: 64_000 } },
  });
  const steps = await converse(run, provider, `anthropic/${model}`);
  expectOneSession(steps);
  // 10 tokens at 3 dollars a million, 5 at 15
  expect(steps.map(({ costNanoUsd }) => costNanoUsd)).toEqual([105_000, 105_000, 105_000, 105_000]);
  const sent = JSON.stringify(upstream.requests.at(-1)?.body);
  for (const round of [1, 2]) expect(sent).toContain(thinks(round).signature);
  expect(sent).toContain(png);
});

it.each(runs)("%s on %s, stream: %s, does the same over Chat Completions", async (...run) => {
  const [said = "", seen = ""] = answers;
  const script: Answer[] = [
    { id: "call_1", name: "look_up", input: { round: 1 } },
    { id: "call_2", name: "look_up", input: { round: 2 } },
    { text: said },
    { text: seen },
  ];
  const asked: string[] = [];
  const upstream = await upstreams["chat-completions"]((last) => {
    asked.push(last);
    return script[asked.length - 1] ?? { text: "" };
  });
  onTestFinished(() => upstream.close());
  const steps = await converse(run, upstream.provider, upstream.target);
  expectOneSession(steps);
  expect(steps.map(({ costNanoUsd }) => costNanoUsd)).toEqual(steps.map(() => upstream.stepCost));
  expect(asked[1]).toContain("18 degrees");
  expect(asked[3]).toContain(png);
});
