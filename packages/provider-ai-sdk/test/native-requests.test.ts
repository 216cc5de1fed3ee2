import { createAmazonBedrock } from "@ai-sdk/amazon-bedrock";
import { createAnthropic } from "@ai-sdk/anthropic";
import type { CompletionRequest, Message, ProviderState, ToolCall } from "@tollgate/core/provider";
import { describe, expect, it } from "vitest";
import type { AiSdkOptions, Connect } from "../src/index.ts";
import { answer, callUpstream } from "./drive.ts";
import { anthropic } from "./native/anthropic.ts";
import { bedrock, whole } from "./native/bedrock.ts";
import { cohere } from "./native/cohere.ts";
import { google } from "./native/google.ts";
import { mistral } from "./native/mistral.ts";

const pixel = "iVBORw0KGgo=";
const schema = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};
const request: CompletionRequest = {
  messages: [
    { role: "developer", content: "Be brief." },
    {
      role: "user",
      content: [
        { type: "text", text: "Where is this?" },
        { type: "image_url", image_url: { url: `data:image/png;base64,${pixel}` } },
      ],
    },
    {
      role: "assistant",
      content: null,
      tool_calls: [
        {
          id: "call00001",
          type: "function",
          function: { name: "locate", arguments: '{"hint":"lake"}' },
        },
      ],
    },
    { role: "tool", tool_call_id: "call00001", content: "Zürich" },
  ],
  tools: [{ name: "locate", description: "finds places", parameters: schema }],
  toolChoice: "required",
  parallelToolCalls: false,
  maxOutputTokens: 77,
  temperature: 0.25,
  stop: ["END"],
};

/** Each vendor's own form of the same request. */
async function asked(connect: (url: string) => Connect, over: CompletionRequest, plain: string) {
  return JSON.parse(await sent(connect, over, plain));
}

/** The same as text. */
async function sent(connect: (url: string) => Connect, over: CompletionRequest, plain: string) {
  const { upstream, thrown } = await callUpstream(
    connect,
    ({ send }) => send(answer("application/json", plain)),
    { request: over, stream: false },
  );
  expect(thrown).toBeNull();
  return upstream.requests[0]?.body ?? "";
}

const calls = (given: readonly ToolCall[], text: string): readonly ToolCall[] =>
  given.map((call) => ({ ...call, function: { ...call.function, arguments: text } }));

const bedrockPlain = whole("end_turn", { text: "Hi" });

describe("the same request", () => {
  it("is written in Anthropic's format", async () => {
    const body = await asked(anthropic.connect, request, anthropic.fixtures.text.plain.body);
    expect(body).toMatchObject({
      model: "model",
      max_tokens: 77,
      temperature: 0.25,
      stop_sequences: ["END"],
      system: [{ type: "text", text: "Be brief." }],
      tools: [{ name: "locate", description: "finds places", input_schema: schema }],
      tool_choice: { type: "any", disable_parallel_tool_use: true },
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "Where is this?" },
            { type: "image", source: { type: "base64", media_type: "image/png", data: pixel } },
          ],
        },
        { role: "assistant", content: [{ type: "tool_use", input: { hint: "lake" } }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "call00001" }] },
      ],
    });
  });

  it("is written in Google's format", async () => {
    const body = await asked(google.connect, request, google.fixtures.text.plain.body);
    expect(body).toMatchObject({
      generationConfig: { maxOutputTokens: 77, temperature: 0.25, stopSequences: ["END"] },
      systemInstruction: { parts: [{ text: "Be brief." }] },
      tools: [{ functionDeclarations: [{ name: "locate" }] }],
      toolConfig: { functionCallingConfig: { mode: "ANY" } },
      contents: [
        { role: "user", parts: [{}, { inlineData: { mimeType: "image/png", data: pixel } }] },
        { role: "model", parts: [{ functionCall: { name: "locate", args: { hint: "lake" } } }] },
        { role: "user", parts: [{ functionResponse: { name: "locate" } }] },
      ],
    });
  });

  it("is written in Mistral's format", async () => {
    const body = await asked(mistral.connect, request, mistral.fixtures.text.plain.body);
    expect(body).toMatchObject({
      max_tokens: 77,
      temperature: 0.25,
      tool_choice: "any",
      parallel_tool_calls: false,
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: [{}, { image_url: `data:image/png;base64,${pixel}` }] },
        { role: "assistant", tool_calls: [{ id: "call00001", function: { name: "locate" } }] },
        { role: "tool", tool_call_id: "call00001", content: "Zürich" },
      ],
    });
  });

  it("is written in Cohere's format", async () => {
    const body = await asked(cohere.connect, request, cohere.fixtures.text.plain.body);
    expect(body).toMatchObject({
      max_tokens: 77,
      stop_sequences: ["END"],
      tool_choice: "REQUIRED",
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user" },
        { role: "assistant", tool_calls: [{ id: "call00001" }] },
        { role: "tool", tool_call_id: "call00001" },
      ],
    });
  });

  it("is written in Amazon Bedrock's format", async () => {
    const body = await asked(bedrock, request, bedrockPlain);
    expect(body).toMatchObject({
      inferenceConfig: { maxTokens: 77, temperature: 0.25, stopSequences: ["END"] },
      system: [{ text: "Be brief." }],
      toolConfig: { tools: [{ toolSpec: { name: "locate" } }], toolChoice: { any: {} } },
      messages: [
        { role: "user", content: [{}, { image: { format: "png", source: { bytes: pixel } } }] },
        { role: "assistant", content: [{ toolUse: { input: { hint: "lake" } } }] },
        { role: "user", content: [{ toolResult: { toolUseId: "call00001" } }] },
      ],
    });
  });

  it("has the client's cache breakpoints, in Anthropic's and in Amazon Bedrock's format", async () => {
    const marked = (fields: ProviderState["fields"]) => ({ state: { from: null, fields } });
    const hour = { type: "ephemeral", ttl: "1h" };
    const messages: Message[] = [
      { role: "system", content: "Be brief.", ...marked({ cache_control: hour }) },
      {
        role: "user",
        content: [
          { type: "text", text: "Hi", ...marked({ cache_control: { type: "ephemeral" } }) },
        ],
      },
    ];
    expect((await limitAt("anthropic", { messages })).body).toMatchObject({
      system: [{ text: "Be brief.", cache_control: hour }],
      messages: [{ content: [{ text: "Hi", cache_control: { type: "ephemeral" } }] }],
    });
    expect((await limitAt("bedrock", { messages })).body).toMatchObject({
      system: [{ text: "Be brief." }, { cachePoint: { type: "default", ttl: "1h" } }],
      messages: [{ content: [{ text: "Hi" }, { cachePoint: { type: "default" } }] }],
    });
  });
});

interface Limited {
  readonly options?: AiSdkOptions;
  readonly upstreamName?: string;
  readonly connect?: (url: string) => Connect;
}

/** The body of a request with an output limit. */
async function limitAt(
  vendor: "anthropic" | "bedrock",
  over: Partial<CompletionRequest>,
  { options = {}, ...given }: Limited = {},
) {
  const [connect, name, plain] =
    vendor === "bedrock"
      ? [bedrock, "us.anthropic.claude-sonnet-4-5-20250929-v1:0", bedrockPlain]
      : [anthropic.connect, "claude-sonnet-4-5", anthropic.fixtures.text.plain.body];
  const { upstream, thrown } = await callUpstream(
    given.connect ?? connect,
    ({ send }) => send(answer("application/json", plain)),
    {
      request: { messages: [{ role: "user", content: "Hi" }], maxOutputTokens: 5_000, ...over },
      upstreamName: given.upstreamName ?? name,
      stream: false,
    },
    options,
  );
  const body = JSON.parse(upstream.requests[0]?.body ?? "null");
  return { body, thrown };
}

/** Anthropic's provider under a name of the operator's. */
const named =
  (name: string) =>
  (url: string): Connect =>
  ({ fetch, credential }) =>
    createAnthropic({ name, apiKey: credential, fetch, baseURL: `${url}/v1` });

describe("the output limit of a model that thinks", () => {
  const high = { reasoningEffort: "high" };

  it("includes the budget", async () => {
    const thinking = { type: "enabled", budget_tokens: 4_000 };
    const { body } = await limitAt("anthropic", high);
    expect(body).toMatchObject({ max_tokens: 5_000, thinking });
    expect((await limitAt("bedrock", high)).body).toMatchObject({
      inferenceConfig: { maxTokens: 5_000 },
      additionalModelRequestFields: { thinking },
    });
  });

  it("is kept by Nova, with a medium effort for a higher one", async () => {
    const { body } = await limitAt("bedrock", high, { upstreamName: "us.amazon.nova-2-lite-v1:0" });
    expect(body).toMatchObject({
      inferenceConfig: { maxTokens: 5_000 },
      additionalModelRequestFields: { reasoningConfig: { maxReasoningEffort: "medium" } },
    });
  });

  it("leaves room to answer if the limit is larger than the model's own", async () => {
    const { body } = await limitAt(
      "anthropic",
      { ...high, maxOutputTokens: 64_000 },
      { upstreamName: "claude-opus-4-1" },
    );
    expect(body.max_tokens).toBe(32_000);
    expect(body.thinking.budget_tokens).toBeLessThan(32_000);
  });

  it("includes the budget of a model that the AI SDK doesn't know", async () => {
    const { body } = await limitAt("anthropic", high, { upstreamName: "production" });
    expect(body).toMatchObject({
      max_tokens: 5_000,
      thinking: { type: "enabled", budget_tokens: 4_000 },
    });
  });

  it.each([
    ["anthropic", "claude-sonnet-4-5-latest"],
    ["anthropic", "claude-haiku-4-5-fast"],
    ["anthropic", "claude-opus-4-1-20250805-thinking"],
    ["anthropic", "claude-sonnet-4-latest"],
    ["anthropic", "claude-opus-4@20250514"],
    ["bedrock", "anthropic.claude-v2:1"],
  ] as const)("includes the budget of a model at %s with the name %s", async (vendor, name) => {
    const { body } = await limitAt(vendor, high, { upstreamName: name });
    expect(body.max_tokens ?? body.inferenceConfig.maxTokens).toBe(5_000);
    const { thinking } = body.additionalModelRequestFields ?? body;
    expect(thinking).toEqual({ type: "enabled", budget_tokens: 4_000 });
  });

  it.each(["claude-opus-4-6-fast", "claude-opus-4-8", "claude-sonnet-5-latest", "claude-opus-4.5"])(
    "is as it was at %s, which has no budget",
    async (upstreamName) => {
      const { body } = await limitAt("anthropic", high, { upstreamName });
      expect(body).toMatchObject({ max_tokens: 5_000, thinking: { type: "adaptive" } });
    },
  );

  it("is left to a configured effort", async () => {
    const options: AiSdkOptions = { providerOptions: () => ({ anthropic: { effort: "low" } }) };
    const { body } = await limitAt("anthropic", high, { options, upstreamName: "claude-opus-4-5" });
    expect(body).toMatchObject({ max_tokens: 5_000, output_config: { effort: "low" } });
    expect(body.thinking).toBeUndefined();
  });

  it.each([
    ["low", "low"],
    ["high", "medium"],
  ])("is kept by Nova with a configured effort of %s", async (given, sent) => {
    const reasoningConfig = { type: "enabled", maxReasoningEffort: given };
    const options = { providerOptions: () => ({ amazonBedrock: { reasoningConfig } }) };
    const over = { ...high, maxOutputTokens: 1_000 };
    const { body } = await limitAt("bedrock", over, {
      options,
      upstreamName: "us.amazon.nova-2-lite-v1:0",
    });
    expect(body).toMatchObject({
      inferenceConfig: { maxTokens: 1_000 },
      additionalModelRequestFields: { reasoningConfig: { maxReasoningEffort: sent } },
    });
  });

  it("includes the budget that Bedrock computes for a configured option without one", async () => {
    const reasoningConfig = { type: "enabled" };
    const options = { providerOptions: () => ({ bedrock: { reasoningConfig } }) };
    const { body } = await limitAt("bedrock", high, { options });
    expect(body).toMatchObject({
      inferenceConfig: { maxTokens: 5_000 },
      additionalModelRequestFields: { thinking: { type: "enabled", budget_tokens: 4_000 } },
    });
  });

  it("leaves no thinking if the smallest budget doesn't fit", async () => {
    const { body } = await limitAt("anthropic", { ...high, maxOutputTokens: 1_024 });
    expect(body).toMatchObject({ max_tokens: 1_024 });
    expect(body.thinking).toBeUndefined();
  });

  it("includes a budget of the configured options, which must fit", async () => {
    const thinking = { type: "enabled", budgetTokens: 2_000 };
    const options: AiSdkOptions = { providerOptions: () => ({ anthropic: { thinking } }) };
    const { body } = await limitAt("anthropic", high, { options });
    expect(body).toMatchObject({ max_tokens: 5_000, thinking: { budget_tokens: 2_000 } });
    const tight = await limitAt("anthropic", { ...high, maxOutputTokens: 2_000 }, { options });
    expect(tight.body).toBeNull();
    expect(tight.thrown).toMatchObject({ status: 400, param: "max_tokens" });
  });

  it.each([
    ["acme", "claude-sonnet-4-5"],
    ["minimax.messages", "MiniMax-M2.7"],
  ])("includes the budget of a provider with the name %s", async (name, upstreamName) => {
    const { body } = await limitAt("anthropic", high, { connect: named(name), upstreamName });
    expect(body).toMatchObject({ max_tokens: 5_000, thinking: { budget_tokens: 4_000 } });
  });

  it("includes a budget that is configured under the provider's own name", async () => {
    const thinking = { type: "enabled", budgetTokens: 2_000 };
    for (const [provider, name] of [
      ["acme", "acme"],
      ["googleVertex.anthropic.messages", "vertex"],
    ] as const) {
      const options = { providerOptions: () => ({ anthropic: {}, [name]: { thinking } }) };
      const { body } = await limitAt("anthropic", high, { options, connect: named(provider) });
      expect(body).toMatchObject({ max_tokens: 5_000, thinking: { budget_tokens: 2_000 } });
    }
  });

  it.each(["application-inference-profile", "provisioned-model", "custom-model-deployment"])(
    "is kept by a %s of Bedrock that the AI SDK treats as Claude",
    async (kind) => {
      const arn = `arn:aws:bedrock:us-east-1:123456789012:${kind}/abc`;
      const connect =
        (url: string): Connect =>
        ({ fetch, credential }) =>
          createAmazonBedrock({ apiKey: credential, fetch, region: "us-east-1", baseURL: url })(
            arn,
            { modelFamily: "anthropic" },
          );
      const { body } = await limitAt("bedrock", high, { connect, upstreamName: arn });
      expect(body).toMatchObject({ inferenceConfig: { maxTokens: 5_000 } });
      expect(body).not.toHaveProperty("additionalModelRequestFields");
      const reasoningConfig = { type: "enabled", budgetTokens: 2_000 };
      const options = { providerOptions: () => ({ amazonBedrock: { reasoningConfig } }) };
      const decided = await limitAt("bedrock", high, { connect, upstreamName: arn, options });
      expect(decided.body).toMatchObject({
        inferenceConfig: { maxTokens: 5_000 },
        additionalModelRequestFields: { thinking: { budget_tokens: 2_000 } },
      });
    },
  );
});

describe("thinking of Claude as a client of the Messages API asks for it", () => {
  const effort = { reasoningEffort: "low", anthropic: { effort: "low" } };
  const disabled = { thinking: { type: "disabled" } } as const;
  const budget = { thinking: { type: "enabled", budgetTokens: 1_500 } } as const;

  it("isn't turned on by an effort alone", async () => {
    for (const upstreamName of ["claude-opus-4-5", "claude-sonnet-5"]) {
      const { body } = await limitAt("anthropic", effort, { upstreamName });
      expect(body).toMatchObject({ max_tokens: 5_000, output_config: { effort: "low" } });
      expect(body).not.toHaveProperty("thinking");
    }
    const upstreamName = "us.anthropic.claude-opus-4-6-v1:0";
    const { body } = await limitAt("bedrock", effort, { upstreamName });
    expect(body.additionalModelRequestFields).toEqual({ output_config: { effort: "low" } });
  });

  it("stays off, with and without an effort", async () => {
    const upstreamName = "claude-sonnet-5";
    for (const over of [disabled, { ...effort, ...disabled }]) {
      const { body } = await limitAt("anthropic", over, { upstreamName });
      expect(body.thinking).toEqual(disabled.thinking);
    }
  });

  it("has the client's own budget, which the limit includes", async () => {
    const thinking = { type: "enabled", budget_tokens: 1_500 };
    const { body } = await limitAt("anthropic", budget);
    expect(body).toMatchObject({ max_tokens: 5_000, thinking });
    expect(body).not.toHaveProperty("output_config");
    expect((await limitAt("bedrock", budget)).body).toMatchObject({
      inferenceConfig: { maxTokens: 5_000 },
      additionalModelRequestFields: { thinking },
    });
    const lowered = await limitAt("anthropic", { ...budget, maxOutputTokens: 1_200 });
    expect(lowered.body).toMatchObject({ max_tokens: 1_200, thinking: { budget_tokens: 1_199 } });
    const tooLow = await limitAt("anthropic", { ...budget, maxOutputTokens: 1_000 });
    expect(tooLow.body.max_tokens).toBe(1_000);
    expect(tooLow.body).not.toHaveProperty("thinking");
  });

  it("is adaptive, at an effort like the budget, for models without budgets", async () => {
    for (const over of [budget, { thinking: { type: "adaptive" } } as const]) {
      const { body } = await limitAt("anthropic", over, { upstreamName: "claude-opus-5-5" });
      expect(body).toMatchObject({ max_tokens: 5_000, thinking: { type: "adaptive" } });
      expect(body.output_config).toEqual(over === budget ? { effort: "low" } : undefined);
    }
  });

  it("is left out in forms that Bedrock's provider doesn't know", async () => {
    const upstreamName = "us.anthropic.claude-opus-4-6-v1:0";
    const asked = async (thinking: NonNullable<CompletionRequest["thinking"]>) => {
      const { body } = await limitAt("bedrock", { thinking }, { upstreamName });
      return body.additionalModelRequestFields;
    };
    expect(await asked({ type: "between_tools" })).toBeUndefined();
    expect(await asked({ type: "adaptive", display: "updates" })).toEqual({
      thinking: { type: "adaptive" },
    });
  });

  it("is left to configured options", async () => {
    const thinking = { type: "enabled", budgetTokens: 2_000 };
    const options: AiSdkOptions = { providerOptions: () => ({ anthropic: { thinking } }) };
    const { body } = await limitAt("anthropic", disabled, { options });
    expect(body).toMatchObject({ max_tokens: 5_000, thinking: { budget_tokens: 2_000 } });
  });
});

describe("instructions that follow other messages", () => {
  const later: CompletionRequest = {
    messages: [
      { role: "system", content: "Be brief." },
      { role: "user", content: "Hi" },
      { role: "assistant", content: "Salut" },
      { role: "developer", content: "In German." },
      { role: "user", content: "Hi" },
    ],
  };
  const both = [{ text: "Be brief." }, { text: "In German." }];

  it("move before the conversation for vendors that take them only there", async () => {
    const plain = google.fixtures.text.plain.body;
    expect(await asked(google.connect, later, plain)).toMatchObject({
      systemInstruction: { parts: both },
      contents: [{ role: "user" }, { role: "model" }, { role: "user" }],
    });
    expect(await asked(bedrock, later, bedrockPlain)).toMatchObject({
      system: both,
      messages: [{ role: "user" }, { role: "assistant" }, { role: "user" }],
    });
  });

  it("keep their place for others", async () => {
    const { plain } = mistral.fixtures.text;
    const { messages } = await asked(mistral.connect, later, plain.body);
    const roles = messages.map(({ role }: { readonly role: string }) => role);
    expect(roles).toEqual(["system", "user", "assistant", "system", "user"]);
  });
});

describe("the digits of a long number in tool arguments", () => {
  const vendors = {
    anthropic: [anthropic.connect, anthropic.fixtures.text.plain.body],
    bedrock: [bedrock, bedrockPlain],
    cohere: [cohere.connect, cohere.fixtures.text.plain.body],
    google: [google.connect, google.fixtures.text.plain.body],
    mistral: [mistral.connect, mistral.fixtures.text.plain.body],
  } as const;

  it.each(Object.entries(vendors))("reach %s", async (_vendor, [connect, plain]) => {
    const long = '{"id":12345678901234567890,"list":[{"n":-9007199254740993}]}';
    const messages = request.messages.map((message) =>
      message.role === "assistant"
        ? { ...message, tool_calls: calls(message.tool_calls ?? [], long) }
        : message,
    );
    const body = await sent(connect, { ...request, messages }, plain);
    // Some vendors take the arguments as text within the body.
    expect(body.replaceAll("\\", "")).toContain(long);
  });
});

describe("the conversation of a request over HTTP", () => {
  it("is converted once, because converting a long one takes long", async () => {
    let reads = 0;
    const question = {
      role: "user",
      get content() {
        reads++;
        return "Hi";
      },
    } as const;
    await sent(anthropic.connect, { messages: [question] }, anthropic.fixtures.text.plain.body);
    expect(reads).toBe(1);
  });
});

describe("tool arguments that are too much to read", () => {
  const vendors = {
    anthropic: [anthropic.connect, anthropic.fixtures.text.plain.body],
    bedrock: [bedrock, bedrockPlain],
    google: [google.connect, google.fixtures.text.plain.body],
  } as const;
  const texts = {
    deep: `${'{"a":'.repeat(20_000)}1${"}".repeat(20_000)}`,
    "of many values": `{"a":[${"1,".repeat(100_000)}1]}`,
  };

  it.each(
    Object.entries(vendors).flatMap(([vendor, made]) =>
      Object.entries(texts).map(([kind, text]) => [vendor, kind, text, made] as const),
    ),
  )("reach %s as text: %s", async (_vendor, _kind, text, [connect, plain]) => {
    const messages = request.messages.map((message) =>
      message.role === "assistant"
        ? { ...message, tool_calls: calls(message.tool_calls ?? [], text) }
        : message,
    );
    const body = await sent(connect, { ...request, messages }, plain);
    expect(body.includes(JSON.stringify({ arguments: text }))).toBe(true);
  });
});

describe("an answer that must match a schema, and reasoning", () => {
  const structured: CompletionRequest = {
    messages: [{ role: "user", content: "Where?" }],
    responseFormat: { type: "json_schema", name: "place", schema },
  };

  it("are requested in each vendor's format", async () => {
    const { text } = google.fixtures;
    expect(await asked(google.connect, structured, text.plain.body)).toMatchObject({
      generationConfig: {
        responseMimeType: "application/json",
        responseJsonSchema: schema,
      },
    });
    const { plain } = mistral.fixtures.text;
    expect(await asked(mistral.connect, structured, plain.body)).toMatchObject({
      response_format: { type: "json_schema", json_schema: { name: "place", schema } },
    });
    const thinking = { messages: structured.messages, reasoningEffort: "high" };
    const anthropicBody = await asked(
      anthropic.connect,
      thinking,
      anthropic.fixtures.text.plain.body,
    );
    expect(anthropicBody).toMatchObject({ thinking: {} });
  });
});
