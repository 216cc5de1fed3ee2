import { createHash } from "node:crypto";
import type { CompletionRequest, Json, Message, ProviderState } from "@tollgate/core/provider";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createRequestWriter, type RequestDialect } from "./request-body.ts";

const standard: RequestDialect = {
  maxTokensField: "max_completion_tokens",
  developerRole: "developer",
  forwardStore: false,
};
const messages: CompletionRequest["messages"] = [
  { role: "developer", content: "Be brief." },
  { role: "user", content: "Hi" },
];

function bodyOf(
  request: Partial<CompletionRequest>,
  over: Partial<RequestDialect> = {},
  stream = false,
): unknown {
  const write = createRequestWriter({ ...standard, ...over });
  const call = { upstreamName: "vendor/model", request: { messages, ...request }, stream };
  return JSON.parse(write(call).body.toString());
}

describe("the body of a request", () => {
  it("contains only the fields of the request", () => {
    expect(bodyOf({})).toEqual({ model: "vendor/model", messages });
    expect(bodyOf({}, {}, true)).toEqual({
      model: "vendor/model",
      messages,
      stream: true,
      stream_options: { include_usage: true },
    });
  });

  it("writes every field under its API name", () => {
    expect(
      bodyOf({
        tools: [
          { name: "f", description: "d", parameters: { type: "object" }, strict: true },
          { name: "g" },
        ],
        toolChoice: { name: "f" },
        parallelToolCalls: false,
        responseFormat: { type: "json_schema", name: "n", schema: {}, strict: true },
        reasoningEffort: "low",
        verbosity: "high",
        temperature: 0,
        topP: 1,
        frequencyPenalty: -2,
        presencePenalty: 2,
        seed: 7,
        logitBias: { 5: -100 },
        logprobs: true,
        topLogprobs: 3,
        stop: ["a", "b"],
        maxOutputTokens: 9,
        user: "u",
        promptCacheKey: "k",
        safetyIdentifier: "s",
        serviceTier: "flex",
      }),
    ).toEqual({
      model: "vendor/model",
      messages,
      tools: [
        {
          type: "function",
          function: { name: "f", description: "d", parameters: { type: "object" }, strict: true },
        },
        { type: "function", function: { name: "g" } },
      ],
      tool_choice: { type: "function", function: { name: "f" } },
      parallel_tool_calls: false,
      response_format: {
        type: "json_schema",
        json_schema: { name: "n", schema: {}, strict: true },
      },
      reasoning_effort: "low",
      verbosity: "high",
      temperature: 0,
      top_p: 1,
      frequency_penalty: -2,
      presence_penalty: 2,
      seed: 7,
      logit_bias: { 5: -100 },
      logprobs: true,
      top_logprobs: 3,
      stop: ["a", "b"],
      max_completion_tokens: 9,
      user: "u",
      prompt_cache_key: "k",
      safety_identifier: "s",
      service_tier: "flex",
    });
  });

  it("restores provider state in the message, part or tool call it came from", () => {
    const state = (fields: ProviderState["fields"]): { state: ProviderState } => ({
      state: { from: "deep/deepseek", fields },
    });
    const call = (more: object) => ({
      id: "call_1",
      type: "function" as const,
      function: { name: "f", arguments: "{}" },
      ...more,
    });
    const given: CompletionRequest["messages"] = [
      {
        role: "user",
        content: [{ type: "text", text: "Hi", ...state({ cache_control: { type: "ephemeral" } }) }],
      },
      {
        role: "assistant",
        content: null,
        tool_calls: [call(state({ extra_content: { google: { thought_signature: "s" } } }))],
        ...state({ reasoning_content: "Hm.", role: "system" }),
      },
    ];
    expect(
      bodyOf({ messages: given, tools: [{ name: "f", ...state({ cache_control: {} }) }] }),
    ).toMatchObject({
      messages: [
        {
          role: "user",
          content: [{ type: "text", text: "Hi", cache_control: { type: "ephemeral" } }],
        },
        {
          role: "assistant",
          reasoning_content: "Hm.",
          tool_calls: [call({ extra_content: { google: { thought_signature: "s" } } })],
        },
      ],
      tools: [{ type: "function", function: { name: "f" }, cache_control: {} }],
    });
    expect(JSON.stringify(bodyOf({ messages: given }))).not.toContain("state");
  });

  it("omits tool fields without tools", () => {
    for (const tools of [{}, { tools: [] }])
      expect(bodyOf({ ...tools, toolChoice: "auto", parallelToolCalls: true })).toEqual(bodyOf({}));
  });

  it("omits the gateway's storage options and labels unless configured otherwise", () => {
    const kept = { store: true, metadata: { project: "x" } };
    expect(bodyOf(kept)).toEqual(bodyOf({}));
    expect(bodyOf(kept, { forwardStore: true })).toMatchObject(kept);
  });

  it("speaks the upstream's dialect", () => {
    expect(bodyOf({ maxOutputTokens: 9 }, { maxTokensField: "max_tokens" })).toMatchObject({
      max_tokens: 9,
    });
    expect(bodyOf({}, { developerRole: "system" })).toMatchObject({
      messages: [{ role: "system", content: "Be brief." }, { role: "user" }],
    });
  });

  it("sends no field the request does not define", () => {
    const request = {
      seed: 1,
      session_id: "s",
      turn_id: "t",
      base_url: "http://elsewhere",
      api_base: "x",
    };
    expect(bodyOf(request)).toEqual(bodyOf({ seed: 1 }));
  });
});

describe("a growing conversation", () => {
  const filler: Message = { role: "system", content: "x".repeat(9_000) };
  const content = fc.string({ unit: "binary" });
  const message = fc.oneof<fc.Arbitrary<Message>[]>(
    fc.record({ role: fc.constant("user"), content }),
    fc.record({ role: fc.constant("assistant"), content }),
    fc.record({ role: fc.constant("tool"), tool_call_id: content, content }),
    fc.record({
      role: fc.constant("tool"),
      tool_call_id: content,
      content: fc.constant([{ type: "image_url", image_url: { url: "https://a.example/b" } }]),
    }),
  );

  it("sends the same bytes and digest as a new one", () => {
    const turns = fc.array(
      fc.tuple(fc.array(message, { maxLength: 3 }), fc.constantFrom("a", "b")),
      {
        maxLength: 5,
      },
    );
    fc.assert(
      fc.property(turns, (added) => {
        const write = createRequestWriter(standard);
        let before: readonly Message[] = [filler];
        for (const [index, [more, upstreamName]] of added.entries()) {
          const request = { messages: [...before, ...more], temperature: index };
          const call = { upstreamName, request, stream: index % 2 === 0 };
          const whole = createRequestWriter(standard)(call);
          const continued = write({ ...call, continues: before });
          expect(continued.body.toString()).toBe(whole.body.toString());
          const digest = createHash("sha256").update(whole.body).digest("hex");
          expect([continued.sha256(), whole.sha256()]).toEqual([digest, digest]);
          before = request.messages;
        }
      }),
    );
  });

  it("does not write its earlier messages again", () => {
    const write = createRequestWriter(standard);
    const call = { upstreamName: "m", stream: false };
    const first: readonly Message[] = [filler];
    write({ ...call, request: { messages: first } }).sha256();
    const unread: Message = {
      role: "system",
      get content(): string {
        throw new Error("was read");
      },
    };
    const messages: readonly Message[] = [unread, { role: "user", content: "Hi" }];
    const { body } = write({ ...call, request: { messages }, continues: first });
    expect(JSON.parse(body.toString())).toMatchObject({
      messages: [filler, { role: "user", content: "Hi" }],
    });
  });
});

/** The field that sends each member of a request, null for none, and an example. A new member must be listed here. */
const sentAs: Readonly<{
  [Name in keyof CompletionRequest]-?: readonly [
    field: string | null,
    example: NonNullable<CompletionRequest[Name]>,
  ];
}> = {
  messages: ["messages", messages],
  tools: ["tools", [{ name: "add" }]],
  toolChoice: ["tool_choice", "required"],
  parallelToolCalls: ["parallel_tool_calls", false],
  responseFormat: ["response_format", { type: "json_object" }],
  reasoningEffort: ["reasoning_effort", "low"],
  verbosity: ["verbosity", "low"],
  temperature: ["temperature", 0.5],
  topP: ["top_p", 0.5],
  frequencyPenalty: ["frequency_penalty", 1],
  presencePenalty: ["presence_penalty", 1],
  seed: ["seed", 7],
  logitBias: ["logit_bias", { "5": 1 }],
  logprobs: ["logprobs", true],
  topLogprobs: ["top_logprobs", 2],
  stop: ["stop", "END"],
  maxOutputTokens: ["max_completion_tokens", 9],
  user: ["user", "ada"],
  metadata: ["metadata", { team: "a" }],
  store: ["store", true],
  promptCacheKey: ["prompt_cache_key", "k"],
  safetyIdentifier: ["safety_identifier", "s"],
  serviceTier: ["service_tier", "flex"],
  thinking: ["reasoning_effort", { type: "enabled", budgetTokens: 2_048 }],
  topK: [null, 40],
  anthropic: [null, { betas: ["context-1m-2025-08-07"] }],
};

describe("every member of a request", () => {
  it.each(Object.entries(sentAs))("sends %s", (member, [field, example]) => {
    const tools = [{ name: "add" }];
    const body = bodyOf({ tools, store: true, [member]: example }, { forwardStore: true });
    if (field === null)
      expect(body).toEqual(bodyOf({ tools, store: true }, { forwardStore: true }));
    else expect(body).toHaveProperty(field);
  });

  it("leaves out members of messages that Chat Completions has no place for", () => {
    const state = (thinking_blocks: Json) => ({ from: "g/v", fields: { thinking_blocks } });
    const thought = { type: "thinking", thinking: "Hm", signature: "s" };
    const body = bodyOf({
      messages: [
        { role: "assistant", content: "a", state: state([{ ...thought, index: 0 }, "odd"]) },
        { role: "tool", tool_call_id: "c", content: "No such file", is_error: true },
        { role: "user", content: "Go on", sameTurn: true },
      ],
    });
    expect(body).toMatchObject({
      messages: [
        { role: "assistant", content: "a", thinking_blocks: [thought, "odd"] },
        { role: "tool", tool_call_id: "c", content: "No such file" },
        { role: "user", content: "Go on" },
      ],
    });
    expect(JSON.stringify(body)).not.toMatch(/is_error|sameTurn|index/);
  });
});

describe("the reasoning effort", () => {
  it.each([
    [1_024, "low"],
    [4_096, "low"],
    [10_000, "medium"],
    [16_385, "high"],
  ])("of a thinking budget of %i tokens is %s", (budgetTokens, effort) => {
    const thinking = { type: "enabled", budgetTokens } as const;
    expect(bodyOf({ thinking })).toMatchObject({ reasoning_effort: effort });
    expect(bodyOf({ thinking, reasoningEffort: "max" })).toMatchObject({ reasoning_effort: "max" });
    expect(bodyOf({ thinking: { type: "adaptive" } })).not.toHaveProperty("reasoning_effort");
  });
});
