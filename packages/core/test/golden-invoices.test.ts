import type { Billing, ModelConfiguration } from "@tollgate/core/provider";
import { anthropic } from "@tollgate/provider-anthropic";
import { openaiCompatible } from "@tollgate/provider-openai";
import { createTestGateway, scriptedUpstream } from "@tollgate/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { eventLog } from "./event-log.ts";

/** An answer's usage as its provider reports it, and the invoice for it in nanodollars, worked out by hand. */
interface Invoice {
  readonly prices: ModelConfiguration;
  readonly usage: object;
  readonly asked?: string;
  readonly served?: string;
  readonly billing?: Billing;
  readonly cost: number;
  readonly recorded?: object;
}

const gpt: ModelConfiguration = {
  input: "2.50",
  cachedInput: "0.25",
  cacheWrite: "3.125",
  output: 15,
  longPrompt: [{ above: 272_000, input: 5, cachedInput: "0.50", output: "22.50" }],
  tiers: {
    priority: { input: 5, cachedInput: "0.50", output: 30 },
    flex: { input: "1.25", cachedInput: "0.125", output: "7.50" },
  },
};
const claude: ModelConfiguration = {
  input: 3,
  cachedInput: "0.30",
  cacheWrite: { "5m": "3.75", "1h": 6 },
  output: 15,
};
const gptUsage = {
  prompt_tokens: 2_006,
  completion_tokens: 300,
  total_tokens: 2_306,
  prompt_tokens_details: { cached_tokens: 1_920, audio_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 128, audio_tokens: 0 },
};
// 86 x 2,500 + 1,920 x 250 + 300 x 15,000 = 215,000 + 480,000 + 4,500,000
const gptCost = 5_195_000;
const routed = {
  prices: { input: 3, output: 15 },
  usage: {
    prompt_tokens: 194,
    completion_tokens: 2,
    total_tokens: 196,
    cost: 0.00063,
    cost_details: { upstream_inference_cost: null },
    prompt_tokens_details: { cached_tokens: 0, cache_write_tokens: 0, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0 },
  },
};

const invoices: Readonly<Record<string, Invoice>> = {
  "OpenAI, without a tier": { prices: gpt, usage: gptUsage, cost: gptCost },
  "OpenAI, served at the standard tier": {
    prices: gpt,
    usage: gptUsage,
    asked: "auto",
    served: "default",
    cost: gptCost,
    recorded: { serviceTier: "default", costBasis: "reported" },
  },
  "OpenAI, priority": {
    prices: gpt,
    usage: gptUsage,
    asked: "priority",
    served: "priority",
    // 86 x 5,000 + 1,920 x 500 + 300 x 30,000 = 430,000 + 960,000 + 9,000,000
    cost: 10_390_000,
    recorded: { serviceTier: "priority", costBasis: "reported" },
  },
  "OpenAI, priority served at the standard tier": {
    prices: gpt,
    usage: gptUsage,
    asked: "priority",
    served: "default",
    cost: gptCost,
  },
  "OpenAI, priority, without a reported tier": {
    prices: gpt,
    usage: gptUsage,
    asked: "priority",
    cost: 10_390_000,
    recorded: { serviceTier: null, usageBasis: "reported", costBasis: "estimated" },
  },
  "OpenAI, flex": {
    prices: gpt,
    usage: gptUsage,
    asked: "flex",
    served: "flex",
    // 86 x 1,250 + 1,920 x 125 + 300 x 7,500 = 107,500 + 240,000 + 2,250,000
    cost: 2_597_500,
  },
  "OpenAI, served at a priced tier that was not requested": {
    prices: gpt,
    usage: gptUsage,
    served: "priority",
    cost: 10_390_000,
    recorded: { costBasis: "reported" },
  },
  "OpenAI, served at an unpriced tier that was not requested": {
    prices: gpt,
    usage: gptUsage,
    served: "ultrafast",
    cost: gptCost,
    recorded: { serviceTier: "ultrafast", costBasis: "estimated" },
  },
  "OpenAI, writing to its cache": {
    prices: gpt,
    usage: {
      prompt_tokens: 5_000,
      completion_tokens: 100,
      prompt_tokens_details: { cached_tokens: 1_000, cache_write_tokens: 3_000 },
    },
    // 1,000 x 2,500 + 1,000 x 250 + 3,000 x 3,125 + 100 x 15,000 = 2,500,000 + 250,000 + 9,375,000 + 1,500,000
    cost: 13_625_000,
    recorded: { cacheWriteTokens: 3_000 },
  },
  "OpenAI, a long prompt": {
    prices: gpt,
    usage: {
      prompt_tokens: 300_000,
      completion_tokens: 1_000,
      prompt_tokens_details: { cached_tokens: 100_000 },
    },
    // 200,000 x 5,000 + 100,000 x 500 + 1,000 x 22,500 = 1,000,000,000 + 50,000,000 + 22,500,000
    cost: 1_072_500_000,
  },
  "OpenAI, sound": {
    prices: { input: "2.50", output: 10, audio: { input: 32, output: 64 } },
    usage: {
      prompt_tokens: 150,
      completion_tokens: 80,
      prompt_tokens_details: { audio_tokens: 100 },
      completion_tokens_details: { audio_tokens: 60 },
    },
    // 50 x 2,500 + 100 x 32,000 + 20 x 10,000 + 60 x 64,000 = 125,000 + 3,200,000 + 200,000 + 3,840,000
    cost: 7_365_000,
    recorded: { audioInputTokens: 100, audioOutputTokens: 60 },
  },
  "Anthropic, its cache inside the prompt": {
    prices: claude,
    usage: {
      prompt_tokens: 1_850,
      completion_tokens: 400,
      total_tokens: 2_250,
      cache_read_input_tokens: 1_500,
      cache_creation_input_tokens: 300,
      cache_creation: { ephemeral_5m_input_tokens: 200, ephemeral_1h_input_tokens: 100 },
    },
    // 50 x 3,000 + 1,500 x 300 + 200 x 3,750 + 100 x 6,000 + 400 x 15,000
    // = 150,000 + 450,000 + 750,000 + 600,000 + 6,000,000
    cost: 7_950_000,
    recorded: { promptTokens: 1_850, cacheWriteTokens: 300, cacheWrite1hTokens: 100 },
  },
  "Anthropic, its cache outside the prompt": {
    prices: claude,
    usage: {
      prompt_tokens: 50,
      completion_tokens: 400,
      input_tokens: 50,
      output_tokens: 400,
      cache_read_input_tokens: 1_500,
      cache_creation_input_tokens: 300,
      cache_creation: { ephemeral_5m_input_tokens: 200, ephemeral_1h_input_tokens: 100 },
      service_tier: "standard",
    },
    cost: 7_950_000,
    recorded: { promptTokens: 1_850, cachedTokens: 1_500, serviceTier: "default" },
  },
  "Gemini, thoughts only in the total": {
    prices: { input: "1.25", cachedInput: "0.125", output: 10 },
    usage: { prompt_tokens: 1_000, completion_tokens: 100, total_tokens: 1_600 },
    // 1,000 x 1,250 + 600 x 10,000
    cost: 7_250_000,
    recorded: { completionTokens: 600 },
  },
  "DeepSeek, cache hits and misses": {
    prices: { input: "0.28", cachedInput: "0.028", output: "0.42" },
    usage: {
      prompt_tokens: 1_200,
      completion_tokens: 500,
      total_tokens: 1_700,
      prompt_cache_hit_tokens: 1_024,
      prompt_cache_miss_tokens: 176,
      completion_tokens_details: { reasoning_tokens: 300 },
    },
    // 176 x 280 + 1,024 x 28 + 500 x 420 = 49,280 + 28,672 + 210,000
    cost: 287_952,
  },
  "OpenRouter, its cost not trusted": {
    ...routed,
    // 194 x 3,000 + 2 x 15,000
    cost: 612_000,
    recorded: { priceSource: "custom", reportedCostNanoUsd: 630_000 },
  },
  "OpenRouter, its cost trusted": {
    ...routed,
    billing: { reportedCost: "trust" },
    cost: 630_000,
    recorded: { priceSource: "provider", reportedCostNanoUsd: 630_000 },
  },
  "OpenRouter, a trusted cost far above the price table": {
    ...routed,
    usage: { ...routed.usage, cost: 0.5 },
    billing: { reportedCost: "trust" },
    cost: 612_000,
    recorded: { priceSource: "custom", reportedCostNanoUsd: 500_000_000 },
  },
  "OpenRouter, a trusted cost far below the price table": {
    ...routed,
    usage: { ...routed.usage, cost: 0.0000001 },
    billing: { reportedCost: "trust", reportedCostFactor: 3 },
    cost: 612_000,
    recorded: { priceSource: "custom", reportedCostNanoUsd: 100 },
  },
  "OpenRouter, with a key of the operator's own for the provider behind it": {
    ...routed,
    usage: {
      ...routed.usage,
      cost: 0.0000315,
      is_byok: true,
      cost_details: { upstream_inference_cost: 0.000630000443 },
    },
    billing: { reportedCost: "trust" },
    // 31,500 + 630,001
    cost: 661_501,
    recorded: { priceSource: "provider", reportedCostNanoUsd: 661_501 },
  },
  "Azure, with predictions": {
    prices: { input: "2.50", cachedInput: "1.25", output: 10 },
    usage: {
      prompt_tokens: 1_300,
      completion_tokens: 60,
      total_tokens: 1_360,
      prompt_tokens_details: { audio_tokens: 0, cached_tokens: 1_152 },
      completion_tokens_details: {
        accepted_prediction_tokens: 10,
        audio_tokens: 0,
        reasoning_tokens: 0,
        rejected_prediction_tokens: 5,
      },
    },
    // 148 x 2,500 + 1,152 x 1,250 + 60 x 10,000 = 370,000 + 1,440,000 + 600,000
    cost: 2_410_000,
  },
  "Perplexity, with a price per request": {
    prices: { input: 1, output: 1, request: "0.005" },
    usage: { prompt_tokens: 12, completion_tokens: 30, total_tokens: 42 },
    // 12 x 1,000 + 30 x 1,000 + 5,000,000
    cost: 5_042_000,
  },
  "details larger than their count": {
    prices: gpt,
    usage: {
      prompt_tokens: 100,
      completion_tokens: 10,
      prompt_tokens_details: { cached_tokens: 90, cache_write_tokens: 20, audio_tokens: -5 },
      completion_tokens_details: { reasoning_tokens: 11 },
    },
    // 10 x 2,500 + 90 x 250 + 10 x 15,000 = 25,000 + 22,500 + 150,000
    cost: 197_500,
  },
};

async function ask({ prices, usage, asked, served, billing }: Invoice, stream: boolean) {
  const tier = served === undefined ? {} : { service_tier: served };
  const upstream = await scriptedUpstream(async ({ send, end }) => {
    const type = stream ? "text/event-stream" : "application/json";
    await send(`HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\nconnection: close\r\n\r\n`);
    const choice = { index: 0, finish_reason: "stop" };
    if (stream) {
      await send(
        `data: ${JSON.stringify({ ...tier, choices: [{ ...choice, delta: { content: "Hi" } }] })}\n\n`,
      );
      await send(`data: ${JSON.stringify({ choices: [], usage })}\n\ndata: [DONE]\n\n`);
    } else {
      const message = { role: "assistant", content: "Hi" };
      await send(JSON.stringify({ ...tier, choices: [{ ...choice, message }], usage }));
    }
    end();
  });
  const provider = openaiCompatible({
    baseURL: `${upstream.url}/v1`,
    apiKey: null,
    models: { "acme/m": prices },
    ...(billing === undefined ? {} : { billing }),
  });
  const test = await createTestGateway({
    providers: { upstream: provider },
    budgets: [{ id: "month", limit: { usd: 100 }, period: "month" }],
  });
  onTestFinished(async () => {
    await test.gateway.close();
    await upstream.close();
  });
  const body = { model: "upstream/acme/m", stream, ...(asked && { service_tier: asked }) };
  const answer = await test.gateway.fetch(test.chat(body));
  expect(answer.status).toBe(200);
  return { ...test, text: await answer.text() };
}

describe("golden invoices", () => {
  describe.each(Object.entries(invoices))("%s", (_, invoice) => {
    it.each([
      ["a stream", true],
      ["a plain answer", false],
    ])("come out to the nanodollar for %s", async (_form, stream) => {
      const { gateway, key, text } = await ask(invoice, stream);
      const { organizationId } = key;
      const [step] = (await gateway.steps.list({ organizationId })).data;
      expect(step?.attempts[0]).toMatchObject({
        costNanoUsd: invoice.cost,
        ...invoice.recorded,
      });
      const { data: activity } = await gateway.activity.list({ organizationId });
      const summary = await gateway.steps.summarize({ organizationId }, "model");
      const { data: budgets } = await gateway.budgets.status({ id: "month" });
      expect([step?.costNanoUsd, activity[0]?.costNanoUsd, summary[0]?.costNanoUsd]).toEqual([
        invoice.cost,
        invoice.cost,
        invoice.cost,
      ]);
      expect(budgets).toMatchObject([{ settled: invoice.cost, held: 0 }]);
      if (invoice.served !== undefined)
        expect(text).toContain(`"service_tier":"${invoice.served}"`);
    });
  });
});

describe("an invoice for a stream that its client left", () => {
  const start = {
    input_tokens: 10,
    cache_read_input_tokens: 100_000,
    cache_creation_input_tokens: 0,
    output_tokens: 1,
  };

  async function leave(usage: object) {
    const upstream = await scriptedUpstream(async ({ send }) => {
      await send("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n");
      const events = [
        { type: "message_start", message: { id: "m", model: "claude", usage } },
        { type: "content_block_start", index: 0, content_block: { type: "text", text: "123456" } },
      ];
      for (const event of events) await send(`data: ${JSON.stringify(event)}\n\n`);
    });
    const provider = anthropic({
      baseURL: `${upstream.url}/v1`,
      apiKey: null,
      models: { "acme/m": claude },
    });
    const log = eventLog();
    const test = await createTestGateway({
      providers: { upstream: provider },
      observers: log.observers,
    });
    onTestFinished(async () => {
      await test.gateway.close();
      await upstream.close();
    });
    const answer = await test.gateway.fetch(test.chat({ model: "upstream/acme/m", stream: true }));
    const reader = answer.body?.getReader();
    await reader?.read();
    await reader?.cancel();
    await log.seeing("step.settled");
    const { organizationId } = test.key;
    return (await test.gateway.steps.list({ organizationId })).data[0]?.attempts[0];
  }

  it("counts each kind of input that the provider reported at its own price", async () => {
    expect(await leave(start)).toMatchObject({
      outcome: "cancelled",
      usageBasis: "estimated",
      costBasis: "estimated",
      cachedTokens: 100_000,
      completionTokens: 2,
      // 10 x 3,000 + 100,000 x 300 + 2 x 15,000
      costNanoUsd: 30_060_000,
    });
  });

  it("counts the estimated input if the provider only counts it at the end", async () => {
    const zero = { input_tokens: 0, output_tokens: 0 };
    expect(await leave(zero)).toMatchObject({ promptTokens: 10, costNanoUsd: 90_000 });
  });

  it("counts input of unknown kinds at the highest price", async () => {
    // 10 x 6,000, as a write to the cache for an hour, + 2 x 15,000
    expect(await leave({ input_tokens: 10 })).toMatchObject({ costNanoUsd: 90_000 });
  });
});
