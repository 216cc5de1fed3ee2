import type Anthropic from "@anthropic-ai/sdk";
import { definePolicy, permit } from "@tollgate/core/policy";
import { type Provider, ProviderError } from "@tollgate/core/provider";
import { memoryStore } from "@tollgate/store-memory";
import {
  createTestGateway,
  faultyStore,
  type ScriptedAnswer,
  scriptedProvider,
} from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { joined, messagesOf } from "./messages-calls.ts";
import { written } from "./written.ts";

const tools = [
  { name: "look_up", description: "Looks up", input_schema: { type: "object" } },
  { name: "other", type: "custom", input_schema: { type: "object", properties: {} } },
];
const image = Buffer.from("an image").toString("base64");
const cached = { cache_control: { type: "ephemeral", ttl: "1h" } };
const breakpoint = { state: { from: null, fields: cached } };

async function made(options: Parameters<typeof createTestGateway>[0] = {}) {
  const test = await createTestGateway(options);
  return { ...test, ...messagesOf(test.gateway, test.key.secret) };
}

const signed = (index: number, thinking: string) => ({
  type: "thinking",
  index,
  thinking,
  signature: `signed ${thinking}`,
});

/** Answers of every kind, each with the blocks that it becomes. */
const answers: Readonly<Record<string, readonly [ScriptedAnswer, readonly object[], string]>> = {
  "a text": [{ text: ["Hel", "lo"] }, [{ type: "text", text: "Hello" }], "end_turn"],
  "an empty answer": [{}, [], "end_turn"],
  "reasoning without a signature": [
    { reasoning: ["Hm", "m."], text: "Hi" },
    [
      { type: "thinking", thinking: "Hmm.", signature: "" },
      { type: "text", text: "Hi" },
    ],
    "end_turn",
  ],
  "signed thinking": [
    {
      reasoning: "Hmm.",
      state: {
        thinking_blocks: [
          signed(0, "Hmm."),
          { type: "redacted_thinking", index: 1, data: "secret" },
        ],
      },
      text: "Hi",
    },
    [
      { type: "thinking", thinking: "Hmm.", signature: expect.stringContaining("signed Hmm.") },
      { type: "redacted_thinking", data: expect.stringContaining("secret") },
      { type: "text", text: "Hi" },
    ],
    "end_turn",
  ],
  "two calls after a text": [
    {
      text: "Let me see.",
      toolCalls: [
        { name: "look_up", arguments: ['{"city":', '"Paris"}'], id: "toolu_1" },
        { name: "other", arguments: "", id: "toolu_2" },
      ],
    },
    [
      { type: "text", text: "Let me see." },
      { type: "tool_use", id: "toolu_1", name: "look_up", input: { city: "Paris" } },
      { type: "tool_use", id: "toolu_2", name: "other", input: {} },
    ],
    "tool_use",
  ],
  "a call of a provider that says it stopped": [
    { toolCalls: [{ name: "look_up", arguments: "{}", id: "a" }], finishReason: "stop" },
    [{ type: "tool_use", id: "a", name: "look_up", input: {} }],
    "tool_use",
  ],
  "a refusal": [
    { refusal: "I can't help with that." },
    [{ type: "text", text: "I can't help with that." }],
    "refusal",
  ],
  "an answer that is cut off": [
    { text: "Once upon", finishReason: "length" },
    [{ type: "text", text: "Once upon" }],
    "max_tokens",
  ],
};

describe("the answer of POST /v1/messages", () => {
  it.each(Object.entries(answers))(
    "has the blocks of %s, plain and streamed",
    async (_, example) => {
      const [answer, content, stop_reason] = example;
      const { provider, create, stream } = await made();
      provider.reply(answer, { times: 2 });
      const plain = await create({ tools });
      expect(plain).toMatchObject({ content, stop_reason, stop_sequence: null });
      const { id, session_id, turn_id, ...whole } = plain;
      const streamed = joined(await stream({ tools }));
      expect(streamed).toMatchObject(whole);
      expect(Object.keys(streamed).sort()).toEqual(Object.keys(plain).sort());
    },
  );

  it("counts tokens read from caches and written to them apart from the rest", async () => {
    const { provider, create } = await made();
    const usage = {
      promptTokens: 1_000,
      completionTokens: 50,
      cachedTokens: 600,
      cacheWriteTokens: 300,
      cacheWrite1hTokens: 200,
      reasoningTokens: 20,
      serviceTier: "standard",
    };
    provider.reply({ text: "Hi", usage });
    expect((await create()).usage).toEqual({
      input_tokens: 100,
      cache_creation_input_tokens: 300,
      cache_read_input_tokens: 600,
      cache_creation: { ephemeral_5m_input_tokens: 100, ephemeral_1h_input_tokens: 200 },
      output_tokens: 50,
      output_tokens_details: { thinking_tokens: 20 },
      server_tool_use: null,
      service_tier: "standard",
      inference_geo: null,
      speed: null,
    });
  });

  it.each([
    [
      "as its provider reported it",
      { promptTokens: 900, cachedTokens: 600, cacheWriteTokens: 300 },
      [0, 600, 300],
    ],
    ["as estimated, if its provider hasn't reported it", { completionTokens: 1 }, [10, 0, 0]],
    ["as estimated, if the report is absurd", { promptTokens: -1, cachedTokens: 5 }, [10, 0, 0]],
  ])("begins a stream with its input, %s", async (_, usage, [input, read, written]) => {
    const { provider } = await made();
    const { gateway, key } = await createTestGateway({
      providers: {
        reporting: {
          ...provider.at("reporting"),
          async *complete() {
            yield [{ type: "request-sent", host: "reporting.test", bodySha256: "" }];
            yield [
              { type: "usage", usage },
              { type: "text-delta", text: "Hi" },
            ];
            yield [
              { type: "usage", usage: { promptTokens: 901, completionTokens: 2 } },
              { type: "finish", reason: "stop" },
            ];
          },
        },
      },
    });
    const events = await messagesOf(gateway, key.secret).stream({ model: "reporting/a/b" });
    expect(events[0]).toMatchObject({
      type: "message_start",
      message: {
        usage: {
          input_tokens: input,
          cache_read_input_tokens: read,
          cache_creation_input_tokens: written,
          output_tokens: 0,
        },
      },
    });
    const { usage: last } = joined(events);
    expect(
      last.input_tokens + last.cache_read_input_tokens + last.cache_creation_input_tokens,
    ).toBe(901);
    expect(last.output_tokens).toBe(2);
  });

  it.each([
    [
      "names the stop sequence that ended it",
      { reason: "stop", stopText: "Two" },
      { stop_reason: "stop_sequence", stop_sequence: "Two" },
    ],
    [
      "says why it was refused",
      { reason: "content_filter", refusal: { category: "cyber", explanation: null } },
      {
        stop_reason: "refusal",
        stop_details: { type: "refusal", category: "cyber", explanation: null },
      },
    ],
  ] as const)("%s", async (_, end, ending) => {
    const { gateway, key } = await createTestGateway({
      providers: {
        stopping: {
          contract: 1,
          connection: "platform",
          models: {},
          open: true,
          vendor: null,
          problems: [],
          async *complete() {
            yield [{ type: "request-sent", host: "stopping.test", bodySha256: "" }];
            yield [
              { type: "text-delta", text: "One" },
              { type: "finish", ...end },
            ];
          },
          async close() {},
        },
      },
    });
    const { create, stream } = messagesOf(gateway, key.secret);
    const asked = { model: "stopping/a/b", stop_sequences: ["Two"] };
    expect(await create(asked)).toMatchObject(ending);
    expect(joined(await stream(asked))).toMatchObject(ending);
  });

  it("has the arguments of a call as the model wrote them, with all digits", async () => {
    const { provider, post } = await made();
    const written = '{"id":1234567890123456789,"price":1.10}';
    provider.reply({ toolCalls: [{ name: "look_up", arguments: written }] });
    expect(await (await post({ tools })).text()).toContain(`"input":${written}}`);
  });

  it("keeps overlapping calls of a stream apart, and text between their arguments", async () => {
    const { gateway, key } = await createTestGateway({
      providers: {
        overlapping: {
          contract: 1,
          connection: "platform",
          models: {},
          open: true,
          vendor: null,
          problems: [],
          async *complete() {
            yield [{ type: "request-sent", host: "overlapping.test", bodySha256: "" }];
            yield [
              { type: "tool-call-started", index: 0, id: "a", name: "look_up" },
              { type: "tool-call-delta", index: 0, arguments: '{"x":' },
              { type: "text-delta", text: "Both." },
              { type: "tool-call-started", index: 1, id: "b", name: "look_up" },
              { type: "tool-call-delta", index: 1, arguments: '{"y":2}' },
            ];
            yield [
              { type: "tool-call-delta", index: 0, arguments: "1}" },
              { type: "finish", reason: "tool_calls" },
            ];
          },
          async close() {},
        },
      },
    });
    const { stream } = messagesOf(gateway, key.secret);
    const { content } = joined(await stream({ model: "overlapping/a/b", tools }));
    expect(content).toMatchObject([
      { id: "a", input: { x: 1 } },
      { text: "Both." },
      { id: "b", input: { y: 2 } },
    ]);
  });

  it("carries the decision, the data class and the request's id as headers", async () => {
    const { post } = await made();
    const { headers } = await post();
    expect(headers.get("request-id")).toBe(headers.get("x-request-id"));
    expect(headers.get("x-service-policy-decision-id")).toMatch(/./);
    expect(headers.get("x-service-data-sensitivity")).toMatch(/./);
  });
});

describe("the request of POST /v1/messages", () => {
  it("reaches the provider with everything that it says", async () => {
    const { provider, create } = await made({ models: { "anthropic/claude": {} } });
    await create(
      {
        model: "test/anthropic/claude",
        system: [
          { type: "text", text: "Be brief." },
          { type: "text", text: "Be kind.", ...cached },
        ],
        messages: [
          {
            role: "user",
            content: [
              { type: "text", text: "What is it?", ...cached },
              { type: "image", source: { type: "url", url: "https://images.test/a.png" } },
              {
                type: "image",
                source: { type: "base64", media_type: "image/png", data: image },
                ...cached,
              },
            ],
          },
          {
            role: "assistant",
            content: [
              { type: "text", text: "Let me see." },
              {
                type: "tool_use",
                id: "toolu_1",
                name: "look_up",
                input: { b: 1, a: 2 },
                ...cached,
              },
            ],
          },
          {
            role: "user",
            content: [
              {
                type: "tool_result",
                tool_use_id: "toolu_1",
                is_error: true,
                content: [{ type: "text", text: "No such file" }],
                ...cached,
              },
              { type: "text", text: "Mind the time." },
            ],
          },
        ],
        tools: [{ ...tools[0], eager_input_streaming: true, ...cached }],
        tool_choice: { type: "any", disable_parallel_tool_use: true },
        thinking: { type: "enabled", budget_tokens: 2_048, display: "omitted" },
        output_config: {
          effort: "high",
          format: { type: "json_schema", schema: { type: "object" } },
        },
        temperature: 0.5,
        top_p: 0.9,
        top_k: 40,
        stop_sequences: ["END"],
        metadata: { user_id: "user-7" },
        service_tier: "standard_only",
        cache_control: { type: "ephemeral" },
        context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
      },
      { "anthropic-beta": "interleaved-thinking-2025-05-14, code-execution-2025-05-22" },
    );
    expect(provider.calls[0]?.request).toEqual({
      messages: [
        {
          role: "system",
          content: [
            { type: "text", text: "Be brief." },
            { type: "text", text: "Be kind.", ...breakpoint },
          ],
        },
        {
          role: "user",
          content: [
            { type: "text", text: "What is it?", ...breakpoint },
            { type: "image_url", image_url: { url: "https://images.test/a.png" } },
            {
              type: "image_url",
              image_url: { url: `data:image/png;base64,${image}` },
              ...breakpoint,
            },
          ],
        },
        {
          role: "assistant",
          content: "Let me see.",
          tool_calls: [
            {
              id: "toolu_1",
              type: "function",
              function: { name: "look_up", arguments: '{"b":1,"a":2}' },
              ...breakpoint,
            },
          ],
        },
        {
          role: "tool",
          tool_call_id: "toolu_1",
          content: "No such file",
          is_error: true,
          ...breakpoint,
        },
        { role: "user", content: "Mind the time.", sameTurn: true },
      ],
      tools: [
        {
          name: "look_up",
          description: "Looks up",
          parameters: { type: "object" },
          state: { from: null, fields: { ...cached, eager_input_streaming: true } },
        },
      ],
      toolChoice: "required",
      parallelToolCalls: false,
      thinking: { type: "enabled", budgetTokens: 2_048, display: "omitted" },
      reasoningEffort: "high",
      responseFormat: { type: "json_schema", name: "answer", schema: { type: "object" } },
      maxOutputTokens: 64,
      temperature: 0.5,
      topP: 0.9,
      topK: 40,
      stop: ["END"],
      user: "user-7",
      metadata: { user_id: "user-7" },
      serviceTier: "default",
      anthropic: {
        betas: ["interleaved-thinking-2025-05-14"],
        effort: "high",
        cacheControl: { type: "ephemeral" },
        contextManagement: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
      },
    });
  });

  const said = (content: unknown) => ({ messages: [{ role: "user", content }] });
  it.each<readonly [string, Readonly<Record<string, unknown>>, string]>([
    ["no max_tokens", { max_tokens: undefined }, "'max_tokens' is required."],
    ["no messages", { messages: [] }, "'messages' must have at least 1 item."],
    [
      "an unknown member",
      { max_output_tokens: 5 },
      "'max_output_tokens' is not a known parameter.",
    ],
    ["no room for tokens", { max_tokens: 0 }, "'max_tokens' must be at least 1."],
    ["a temperature above 1", { temperature: 1.5 }, "'temperature' must be between 0 and 1."],
    ["a container", { container: "c" }, "'container' is not supported."],
    ["MCP servers", { mcp_servers: [{}] }, "'mcp_servers' is not supported."],
    ["fast mode", { speed: "fast" }, "'speed' must be standard."],
    [
      "a document",
      said([{ type: "document", source: {} }]),
      "'messages[0].content[0].type' is not supported; use text, image, tool_result.",
    ],
    [
      "an image that isn't base64",
      said([{ type: "image", source: { type: "base64", media_type: "image/png", data: "%%" } }]),
      "'messages[0].content[0].source.data' must contain the image in base64.",
    ],
    [
      "a file",
      said([{ type: "image", source: { type: "file", file_id: "f" } }]),
      "'messages[0].content[0].source.type' is not supported; use base64, url.",
    ],
    [
      "a result of a tool that the provider ran",
      { messages: [{ role: "assistant", content: [{ type: "web_search_tool_result" }] }] },
      "'messages[0].content[0].type' is not supported; use text, tool_use, thinking, redacted_thinking.",
    ],
    ...["web_search_20250305", "code_execution_20250825", "computer_20250124"].map(
      (type) =>
        [
          type,
          { tools: [{ type, name: "x" }] },
          `'tools[0].type' names a tool that the provider defines or runs, which is not supported: '${type}'; use custom.`,
        ] as const,
    ),
    [
      "a choice of no tool at all",
      { tool_choice: { type: "any" } },
      "'tool_choice' requires a tool call, but the request has no tools.",
    ],
    [
      "a choice of an unknown tool",
      { tools, tool_choice: { type: "tool", name: "missing" } },
      "'tool_choice.name' names a function that is not among the tools.",
    ],
  ])("is refused with %s", async (_, fields, message) => {
    const { fail } = await made();
    const { error } = await fail(400, fields);
    expect(error).toEqual({ type: "invalid_request_error", message });
  });
});

describe("the input of a tool in a request of POST /v1/messages", () => {
  it("reaches the provider with all digits and any names, and so do schemas and examples", async () => {
    const { provider, gateway, key } = await made();
    const input = '{"id":1234567890123456789,"constructor":{"__proto__":1e400}}';
    const schema = '{"type":"object","maximum":18446744073709551615}';
    const answer = await gateway.fetch("http://in-process/v1/messages", {
      method: "POST",
      headers: { authorization: `Bearer ${key.secret}`, "content-type": "application/json" },
      body: `{"model":"test/anthropic/scripted","max_tokens":64,"messages":[
        {"role":"user","content":"Hi"},
        {"role":"assistant","content":[{"type":"tool_use","id":"a","name":"look_up","input":${input}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"ok"}]}
      ],"tools":[{"name":"look_up","input_schema":${schema},"input_examples":[${input}]}]}`,
    });
    expect(answer.status).toBe(200);
    const { messages, tools: offered } = provider.calls[0]?.request ?? {};
    expect(messages?.[1]).toMatchObject({ tool_calls: [{ function: { arguments: input } }] });
    expect(JSON.stringify(offered)).toContain(schema);
    expect(JSON.stringify(offered)).toContain(input);
  });

  it("is refused if it is a number, also one too long for JavaScript, and so is a schema", async () => {
    const { gateway, key } = await made();
    for (const number of ["5", "1234567890123456789", "1e400"])
      for (const [input, schema, path] of [
        [number, "{}", "messages[0].content[0].input"],
        ["{}", number, "tools[0].input_schema"],
      ]) {
        const answer = await gateway.fetch("http://in-process/v1/messages", {
          method: "POST",
          headers: { authorization: `Bearer ${key.secret}`, "content-type": "application/json" },
          body: `{"model":"test/tollgate/scripted","max_tokens":64,"messages":[
            {"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":${input}}]},
            {"role":"user","content":"Hi"}
          ],"tools":[{"name":"f","input_schema":${schema}}]}`,
        });
        expect(answer.status).toBe(400);
        expect(await answer.text()).toContain(`'${path}' must be an object, not a number.`);
      }
  });
});

describe("a failure of POST /v1/messages", () => {
  const failing = (status: number, code: string | null = null) =>
    new ProviderError("It failed.", {
      reason: `status_${status}`,
      delivery: "answered",
      status,
      code,
    });

  it.each([
    [413, "request_too_large", { limits: { headerBytes: 10 } }],
    [429, "billing_error", { budgets: [{ id: "b", limit: { requests: 0 }, period: "day" }] }],
    [429, "rate_limit_error", { rateLimits: [{ id: "r", limit: { requests: 0 }, per: "minute" }] }],
  ] as const)("is %i %s in the form of the Messages API", async (status, type, options) => {
    const { fail } = await made(options as object);
    expect((await fail(status)).error.type).toBe(type);
  });

  it("says who isn't authenticated, and which paths and methods there are", async () => {
    const { gateway, fail } = await made();
    const wrong = { "x-api-key": "tg_wrong" };
    expect((await fail(401, {}, wrong)).error.type).toBe("authentication_error");
    const missing = await gateway.fetch("http://in-process/v1/messages/batches");
    expect(missing.status).toBe(404);
    expect(await missing.json()).toMatchObject({
      type: "error",
      error: { type: "not_found_error" },
    });
    const get = await gateway.fetch("http://in-process/v1/messages");
    expect([get.status, get.headers.get("allow")]).toEqual([405, "POST"]);
    expect((await fail(404, { model: "nowhere/a/b" })).error.type).toBe("not_found_error");
  });

  it("tells agents in the words they know that the prompt is too long", async () => {
    const { provider, fail } = await made({ retries: { max: 0 } });
    provider.fail(failing(400, "context_length_exceeded"));
    const { error } = await fail(400);
    expect(error.type).toBe("invalid_request_error");
    expect(error.message).toContain("prompt is too long");
  });

  it("is overloaded if the provider is, plain and inside a stream", async () => {
    const { provider, fail, stream } = await made({ retries: { max: 0 } });
    provider.fail(failing(529));
    expect((await fail(503)).error.type).toBe("overloaded_error");
    provider.fail(failing(529), { afterEvents: 2, answer: { text: ["Hel", "lo"] } });
    const events = await stream();
    expect(events.at(-1)).toMatchObject({ type: "error", error: { type: "overloaded_error" } });
    expect(events.filter(({ type }) => type === "message_stop")).toEqual([]);
  });
});

describe("a key of the Messages API", () => {
  it("may come as x-api-key or as a bearer token", async () => {
    const { key, post, gateway } = await made();
    const bearer = { "x-api-key": "sk-ant-other", authorization: `Bearer ${key.secret}` };
    expect((await post({}, bearer)).status).toBe(200);
    const models = (headers: Readonly<Record<string, string>>) =>
      gateway.fetch("http://in-process/v1/models", { headers }).then(({ status }) => status);
    const version = { "anthropic-version": "2023-06-01" };
    expect(await models({ "x-api-key": key.secret, ...version })).toBe(200);
    expect(await models({ "x-api-key": key.secret })).toBe(401);
  });
});

describe("a conversation over POST /v1/messages", () => {
  it("is one Session with a Turn for each message of the user", async () => {
    const { gateway, key, provider, create } = await made();
    const call = (round: number): ScriptedAnswer => ({
      state: { thinking_blocks: [signed(0, `Round ${round}`)] },
      reasoning: `Round ${round}`,
      text: `Step ${round}.`,
      toolCalls: [{ name: "look_up", arguments: "{}", id: `toolu_${round}` }],
    });
    provider.reply(call(1));
    provider.reply(call(2));
    provider.reply("18 degrees.");
    provider.reply("You're welcome.");
    const messages: object[] = [{ role: "user", content: "How warm is Paris?" }];
    const turns: string[] = [];
    const sessions = new Set<string>();
    for (let round = 1; round <= 4; round++) {
      const answer = await create({ system: `It is round ${round}.`, messages, tools });
      sessions.add(answer.session_id);
      turns.push(answer.turn_id);
      const results = answer.content.flatMap((block) =>
        block.type === "tool_use"
          ? [{ type: "tool_result", tool_use_id: block.id, content: "18" }]
          : [],
      );
      const next =
        results.length === 0
          ? "Thank you."
          : [...results, { type: "text", text: "<system-reminder>Be brief.</system-reminder>" }];
      messages.push(
        { role: "assistant", content: answer.content },
        { role: "user", content: next },
      );
    }
    expect(sessions.size).toBe(1);
    expect(new Set(turns.slice(0, 3)).size).toBe(1);
    expect(turns[3]).not.toBe(turns[0]);
    const { data } = await gateway.steps.list({ organizationId: key.organizationId });
    expect(data.map(({ stepNumber }) => stepNumber)).toEqual([0, 2, 1, 0]);
    // The client sends back only what Tollgate knows.
    expect(data.map(({ droppedFields }) => droppedFields)).toEqual([{}, {}, {}, {}]);
    // The provider gets its own thinking back, unsealed.
    const sent = provider.calls[2]?.request.messages.flatMap((message) =>
      message.role === "assistant" ? [message.state?.fields["thinking_blocks"]] : [],
    );
    expect(sent).toEqual([[signed(0, "Round 1")], [signed(0, "Round 2")]]);
  });
});

describe("POST /v1/messages/count_tokens", () => {
  const hello = { model: "test/a/b", messages: [{ role: "user", content: "Hello" }] };
  const count = (
    { gateway, key }: Awaited<ReturnType<typeof createTestGateway>>,
    fields: object = {},
  ) =>
    gateway.fetch("http://in-process/v1/messages/count_tokens?beta=true", {
      method: "POST",
      headers: {
        "x-api-key": key.secret,
        "anthropic-version": "2023-06-01",
        "content-type": "application/json",
      },
      body: JSON.stringify({ ...hello, ...fields }),
    });
  const tokensIn = async (answer: Response) =>
    z.strictObject({ input_tokens: z.number() }).parse(await answer.json()).input_tokens;
  const counting = (countTokens: NonNullable<Provider["countTokens"]>) => ({
    providers: { counter: { ...scriptedProvider(), countTokens } },
  });

  it("estimates for a provider that can't count, says so, and records nothing", async () => {
    const test = await createTestGateway();
    const answer = await count(test);
    expect(answer.headers.get("x-service-token-count")).toBe("estimate");
    expect(answer.headers.get("request-id")).toMatch(/./);
    const tokens = await tokensIn(answer);
    expect(tokens).toBeGreaterThan(0);
    // Null means not given.
    expect(await tokensIn(await count(test, { max_tokens: null }))).toBe(tokens);
    const longer = await count(test, { system: "x".repeat(3_000) });
    expect(await tokensIn(longer)).toBeGreaterThan(tokens + 900);
    expect(await written(test.gateway)).toEqual({ steps: 0, sessions: 0, decisions: 0 });
    expect(test.provider.calls).toEqual([]);
  });

  it("asks a provider that can count, once the decision is recorded", async () => {
    const asked: unknown[] = [];
    const test = await createTestGateway(
      counting(async ({ model, request }) => {
        asked.push([model, request.messages, await written(test.gateway)]);
        return 12;
      }),
    );
    const answer = await count(test, { model: "counter/a/b", system: "Be brief." });
    expect(answer.headers.get("x-service-token-count")).toBe("provider");
    expect(await answer.json()).toEqual({ input_tokens: 12 });
    const messages = [{ role: "system", content: "Be brief." }, ...hello.messages];
    const records = { steps: 0, sessions: 0, decisions: 1 };
    expect(asked).toEqual([["a/b", messages, records]]);
    const id = answer.headers.get("x-service-policy-decision-id") ?? "";
    const { organizationId } = test.key;
    expect(await test.gateway.decisions.get({ organizationId, id })).toMatchObject({
      effect: "permit",
      refusal: null,
      facts: { gateway: "counter", model: "b" },
    });
  });

  it("sends nothing to a provider if the decision can't be recorded", async () => {
    let asked = 0;
    const store = faultyStore(memoryStore(), {
      on: { verb: "recordRefusal", nth: 1, when: "before" },
    }).store;
    const test = await createTestGateway({ store, ...counting(async () => ++asked) });
    const answer = await count(test, { model: "counter/a/b" });
    expect([answer.status, asked]).toEqual([503, 0]);
  });

  it.each([
    ["fails", () => Promise.reject(new Error("No."))],
    ["counts nonsense", () => Promise.resolve(-1)],
  ])("estimates if the provider %s", async (_, countTokens) => {
    const answer = await count(await createTestGateway(counting(countTokens)), {
      model: "counter/a/b",
    });
    expect([answer.status, answer.headers.get("x-service-token-count")]).toEqual([200, "estimate"]);
  });

  it("sends nothing to a provider that the policy forbids, and records the refusal", async () => {
    const policy = definePolicy({ rules: [permit("test only", { model: "test/*/*" })] });
    let asked = 0;
    const test = await createTestGateway({ policy, ...counting(async () => ++asked) });
    const answer = await count(test, { model: "counter/a/b" });
    expect(answer.status).toBe(403);
    expect(await answer.json()).toMatchObject({ error: { type: "permission_error" } });
    expect([asked, (await written(test.gateway)).decisions]).toEqual([0, 1]);
  });

  it("is answered at most 300 times at once for a key, and then five times a second", async () => {
    let calls = 0;
    const test = await createTestGateway(counting(async () => ++calls));
    const asked = { model: "counter/a/b" };
    const answers = await Promise.all(Array.from({ length: 301 }, () => count(test, asked)));
    const refused = answers.filter(({ status }) => status !== 200);
    expect(refused.map(({ status, headers }) => [status, headers.get("retry-after-ms")])).toEqual([
      [429, "200"],
    ]);
    expect(await refused[0]?.json()).toMatchObject({ error: { type: "rate_limit_error" } });
    expect(calls).toBe(300);
    const other = await test.createKey({ label: "other" });
    expect((await count({ ...test, key: other.key }, asked)).status).toBe(200);
    await test.clock.advance(200);
    expect([(await count(test, asked)).status, (await count(test, asked)).status]).toEqual([
      200, 429,
    ]);
  });

  it("names the fault of a request", async () => {
    const answer = await count(await createTestGateway(), { messages: undefined });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({
      type: "error",
      error: { message: "'messages' is required." },
    });
  });
});

describe("GET /v1/models for clients of the Messages API", () => {
  it("has the form that they read", async () => {
    const { gateway, key } = await createTestGateway();
    const headers = { "x-api-key": key.secret, "anthropic-version": "2023-06-01" };
    const get = (path: string) =>
      gateway.fetch(`http://in-process/v1/${path}`, { headers }).then((answer) => answer.json());
    const id = "test/tollgate/scripted";
    const model: Anthropic.ModelInfo = {
      type: "model",
      id,
      display_name: id,
      created_at: "1970-01-01T00:00:00Z",
      lifecycle: "active",
      deprecated_at: null,
      retires_at: null,
      line: null,
      capabilities: null,
      max_input_tokens: null,
      max_tokens: null,
    };
    const page = { data: [model], first_id: id, last_id: id, has_more: false };
    expect(await get("models")).toEqual(page);
    expect(await get(`models/${id}`)).toEqual(model);
  });
});
