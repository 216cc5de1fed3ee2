import { createHash } from "node:crypto";
import type { CompletionRequest, Json, Message, ProviderState } from "@tollgate/core/provider";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createCountWriter, createRequestWriter } from "./request-body.ts";
import type { ThinkingOptions } from "./thinking.ts";

const hi: Message = { role: "user", content: "Hi" };
const tools = [{ name: "add" }];

interface Body {
  readonly [member: string]: Json | undefined;
}

function bodyOf(
  request: Partial<CompletionRequest>,
  options: ThinkingOptions & { readonly model?: string } = {},
): Body {
  const call = {
    model: "anthropic/m",
    upstreamName: options.model ?? "claude-opus-4-6",
    request: { messages: [hi], ...request },
    outputCap: 4_096,
    stream: false,
  };
  return JSON.parse(createRequestWriter(options)(call).body.toString());
}

const messagesOf = (...messages: readonly Message[]) => bodyOf({ messages })["messages"];
const mark: ProviderState = { from: null, fields: { cache_control: { type: "ephemeral" } } };
const cache_control = { type: "ephemeral" };

/** The member that sends each member of a request, null for none, and an example. A new member must be listed here. */
const sentAs: Readonly<{
  [Name in keyof CompletionRequest]-?: readonly [
    member: string | null,
    example: NonNullable<CompletionRequest[Name]>,
  ];
}> = {
  messages: ["messages", [hi]],
  tools: ["tools", tools],
  toolChoice: ["tool_choice.type", "required"],
  parallelToolCalls: ["tool_choice.disable_parallel_tool_use", false],
  responseFormat: ["output_config.format", { type: "json_schema", name: "n", schema: {} }],
  reasoningEffort: ["output_config.effort", "low"],
  thinking: ["thinking.budget_tokens", { type: "enabled", budgetTokens: 2_048 }],
  verbosity: [null, "low"],
  temperature: ["temperature", 0.5],
  topP: ["top_p", 0.5],
  topK: ["top_k", 40],
  frequencyPenalty: [null, 1],
  presencePenalty: [null, 1],
  seed: [null, 7],
  logitBias: [null, {}],
  logprobs: [null, false],
  topLogprobs: [null, 0],
  stop: ["stop_sequences", "END"],
  maxOutputTokens: ["max_tokens", 9],
  user: ["metadata.user_id", "ada"],
  metadata: [null, { team: "a" }],
  store: [null, true],
  promptCacheKey: [null, "k"],
  safetyIdentifier: [null, "s"],
  serviceTier: ["service_tier", "auto"],
  anthropic: ["cache_control", { cacheControl: cache_control }],
};

describe("every member of a request", () => {
  it.each(Object.entries(sentAs))("sends %s, or leaves it out", (member, [sent, example]) => {
    const body = bodyOf({ tools, [member]: example });
    if (sent === null) expect(body).toEqual(bodyOf({ tools }));
    else expect(body).toHaveProperty(sent);
  });

  it.each([
    ["logprobs", { logprobs: true }],
    ["top_logprobs", { topLogprobs: 1 }],
    ["logit_bias", { logitBias: { "5": 1 } }],
    ["response_format", { responseFormat: { type: "json_object" } as const }],
    ["reasoning_effort", { reasoningEffort: "enormous" }],
    ["tools", { tools: [{ name: "f", parameters: [] }] }],
  ])("refuses a request whose %s would change the answer", (param, request) => {
    expect(() => bodyOf(request)).toThrow(
      expect.objectContaining({ param, status: 400, delivery: "answered" }),
    );
  });

  it("refuses compaction, which costs a second call over the whole prompt", () => {
    const edited = (type: string) => () =>
      bodyOf({ anthropic: { contextManagement: { edits: [{ type }] } } });
    expect(edited("compact_20260112")).toThrow("Compaction isn't supported.");
    expect(edited("clear_tool_uses_20250919")).not.toThrow();
  });

  it("leaves out a top_p of 1 next to a temperature, because newer models reject the two", () => {
    expect(bodyOf({ temperature: 0.7, topP: 1 })).not.toHaveProperty("top_p");
    expect(bodyOf({ temperature: 0.7, topP: 0.9 })["top_p"]).toBe(0.9);
    expect(bodyOf({ topP: 1 })["top_p"]).toBe(1);
  });

  it("has an output cap: the request's own, or else the one that budgets count", () => {
    expect(bodyOf({})["max_tokens"]).toBe(4_096);
    expect(bodyOf({ maxOutputTokens: 7 })["max_tokens"]).toBe(7);
  });

  it.each([
    ["auto", "auto"],
    ["priority", "auto"],
    ["default", "standard_only"],
    ["flex", "standard_only"],
  ])("asks for the tier %s as %s", (serviceTier, service_tier) => {
    expect(bodyOf({ serviceTier })["service_tier"]).toBe(service_tier);
  });

  it.each([
    ["none", { type: "none" }],
    ["auto", { type: "auto", disable_parallel_tool_use: true }],
    ["required", { type: "any", disable_parallel_tool_use: true }],
    [{ name: "add" }, { type: "tool", name: "add", disable_parallel_tool_use: true }],
  ] as const)("writes the tool choice %j", (toolChoice, tool_choice) => {
    expect(bodyOf({ tools, toolChoice, parallelToolCalls: false })["tool_choice"]).toEqual(
      tool_choice,
    );
    expect(bodyOf({ toolChoice })).not.toHaveProperty("tool_choice");
  });

  it("writes a tool with its schema and what the client added to it", () => {
    const fields = { ...mark.fields, input_examples: [{}], prompt_cache_breakpoint: {} };
    const tool = { name: "f", description: "d", strict: true, state: { from: null, fields } };
    expect(bodyOf({ tools: [{ ...tool, parameters: { properties: {} } }] })["tools"]).toEqual([
      {
        name: "f",
        description: "d",
        strict: true,
        input_schema: { type: "object", properties: {} },
        cache_control,
        input_examples: [{}],
      },
    ]);
  });
});

describe("thinking", () => {
  it.each([
    ["claude-opus-4-6", "high", { type: "adaptive" }, { effort: "high" }],
    ["claude-opus-4-6", "minimal", { type: "adaptive" }, { effort: "low" }],
    ["claude-opus-4-6", "none", { type: "disabled" }, undefined],
    ["claude-sonnet-4-5-20250929", "medium", { type: "enabled", budget_tokens: 2_048 }, undefined],
    ["claude-3-7-sonnet-latest", "low", { type: "enabled", budget_tokens: 1_024 }, undefined],
  ])(
    "of %s with the effort %s is asked for as it knows it",
    (model, reasoningEffort, thinking, config) => {
      const body = bodyOf({ reasoningEffort }, { model });
      expect([body["thinking"], body["output_config"]]).toEqual([thinking, config]);
    },
  );

  it.each(["claude-opus-4-6", "claude-opus-4-5"])(
    "of %s is not asked for by an effort of the Messages API alone",
    (model) => {
      const body = bodyOf({ reasoningEffort: "low", anthropic: { effort: "low" } }, { model });
      expect([body["thinking"], body["output_config"]]).toEqual([undefined, { effort: "low" }]);
    },
  );

  it("that an effort asks for leaves out the sampling and forced tools that the API rejects next to it", () => {
    const sampling = { temperature: 0.2, topP: 0.9, topK: 5 };
    const asked = { reasoningEffort: "low", tools, ...sampling } as const;
    const names = ["thinking", "temperature", "top_p", "top_k"];
    const sent = (request: Partial<CompletionRequest>, model: string) =>
      names.filter((name) => name in bodyOf(request, { model }));
    for (const model of ["claude-opus-4-6", "claude-sonnet-4-5"])
      expect(sent(asked, model)).toEqual(["thinking"]);
    const forced = { ...asked, toolChoice: "required" } as const;
    expect(sent(forced, "claude-sonnet-4-5")).toEqual(["temperature", "top_p", "top_k"]);
    const written = { ...sampling, thinking: { type: "adaptive" } } as const;
    expect(sent(written, "claude-opus-4-6")).toEqual(names);
  });

  it("is asked for by budget or effort if the options say so", () => {
    const asked = { reasoningEffort: "high" };
    expect(bodyOf(asked, { thinking: "budget" })["thinking"]).toMatchObject({ type: "enabled" });
    expect(bodyOf(asked, { thinking: "adaptive", model: "claude-sonnet-4-5" })["thinking"]).toEqual(
      {
        type: "adaptive",
      },
    );
  });

  it("fits a budget into the output cap, unless thinking is interleaved", () => {
    const thinking = { type: "enabled", budgetTokens: 10_000, display: "omitted" } as const;
    const sent = (request: Partial<CompletionRequest>) =>
      bodyOf({ thinking, ...request })["thinking"];
    expect(sent({ maxOutputTokens: 20_000 })).toMatchObject({ budget_tokens: 10_000 });
    expect(sent({})).toEqual({ type: "enabled", budget_tokens: 4_095, display: "omitted" });
    expect(sent({ maxOutputTokens: 1_024 })).toBeUndefined();
    const anthropic = { betas: ["interleaved-thinking-2025-05-14"] };
    expect(sent({ anthropic })).toMatchObject({ budget_tokens: 10_000 });
    expect(
      bodyOf({ reasoningEffort: "low", maxOutputTokens: 1_000 }, { thinking: "budget" }),
    ).not.toHaveProperty("thinking");
  });

  it("goes back to its places among the other blocks, with its signature", () => {
    const thought = (index: number) => ({
      type: "thinking",
      index,
      thinking: `t${index}`,
      signature: "s",
    });
    const thinking_blocks = [
      thought(0),
      { type: "redacted_thinking", index: 1, data: "d" },
      thought(3),
      { type: "thinking", index: 9, thinking: "unsigned" },
      thought(9),
    ];
    const assistant: Message = {
      role: "assistant",
      content: "a",
      tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }],
      state: { from: "g/anthropic", fields: { thinking_blocks } },
    };
    expect(messagesOf(hi, assistant)).toEqual([
      { role: "user", content: "Hi" },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "t0", signature: "s" },
          { type: "redacted_thinking", data: "d" },
          { type: "text", text: "a" },
          { type: "thinking", thinking: "t3", signature: "s" },
          { type: "tool_use", id: "c", name: "f", input: {} },
          { type: "thinking", thinking: "t9", signature: "s" },
        ],
      },
    ]);
  });
});

describe("messages", () => {
  const call = (id: string, given: string) =>
    ({ id, type: "function", function: { name: "f", arguments: given } }) as const;

  it("of one role become one, with tool results first", () => {
    expect(
      messagesOf(
        hi,
        { role: "user", content: [{ type: "text", text: "there", state: mark }] },
        { role: "assistant", content: "", tool_calls: [call("a", '{"n":1.0}'), call("b", "")] },
        { role: "tool", tool_call_id: "a", content: "1", is_error: true, state: mark },
        { role: "user", content: "Go on", sameTurn: true },
        { role: "tool", tool_call_id: "b", content: [] },
      ),
    ).toEqual([
      {
        role: "user",
        content: [
          { type: "text", text: "Hi" },
          { type: "text", text: "there", cache_control },
        ],
      },
      {
        role: "assistant",
        content: [
          { type: "tool_use", id: "a", name: "f", input: { n: 1 } },
          { type: "tool_use", id: "b", name: "f", input: {} },
        ],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "a", content: "1", is_error: true, cache_control },
          { type: "tool_result", tool_use_id: "b" },
          { type: "text", text: "Go on" },
        ],
      },
    ]);
  });

  it("keep the arguments of a tool call byte for byte, and wrap what isn't an object", () => {
    const written = (given: string): string => {
      const messages: readonly Message[] = [
        { role: "assistant", tool_calls: [call("a.b:c", given)] },
      ];
      const request = { messages };
      const sent = { model: "", upstreamName: "m", request, outputCap: 1, stream: false };
      return createRequestWriter({})(sent).body.toString();
    };
    expect(written('{"n": 12345678901234567890.0}')).toContain(
      '"input":{"n": 12345678901234567890.0}',
    );
    expect(written("[1]")).toContain('"input":{"arguments":[1]}');
    const long = "12345678901234567890";
    expect(written(long)).toContain(`"input":{"arguments":"${long}"}`);
    const deep = "[".repeat(20_000) + "]".repeat(20_000);
    expect(written(deep)).toContain(`"input":{"arguments":"${deep}"}`);
    expect(written('{"cut')).toContain('"input":{"arguments":"{\\"cut"}');
    expect(written("{}")).toContain('"id":"a_b_c"');
  });

  it("show images by address and in base64, in tool results too", () => {
    const image = (url: string) => ({ type: "image_url", image_url: { url } }) as const;
    const inline = {
      type: "image",
      source: { type: "base64", media_type: "image/png", data: "aW1n" },
    };
    expect(
      messagesOf(
        { role: "user", content: [image("https://a.example/b.png")] },
        { role: "assistant", tool_calls: [call("a", "{}")] },
        { role: "tool", tool_call_id: "a", content: [image("data:image/png;base64,aW1n")] },
      ),
    ).toMatchObject([
      { content: [{ type: "image", source: { type: "url", url: "https://a.example/b.png" } }] },
      {},
      { content: [{ type: "tool_result", content: [inline] }] },
    ]);
    for (const [named, media_type] of [
      ["image/jpg", "image/jpeg"],
      ["image/PNG", "image/png"],
    ])
      expect(
        messagesOf({ role: "user", content: [image(`data:${named};base64,aW1n`)] }),
      ).toMatchObject([{ content: [{ source: { media_type } }] }]);
    for (const url of ["file:///etc/passwd", "data:text/html,x", "//x", "https://"])
      expect(() => messagesOf({ role: "user", content: [image(url)] })).toThrow("An image must be");
  });

  it("have no texts of white space, which other vendors' models write before their calls", () => {
    const blank = { type: "text", text: "\n\n" } as const;
    const tool_calls = [
      { id: "a", type: "function", function: { name: "f", arguments: "{}" } } as const,
    ];
    const call = { type: "tool_use", id: "a", name: "f", input: {} };
    expect(
      messagesOf(
        { role: "user", content: " " },
        hi,
        { role: "assistant", content: "\n\n", tool_calls },
        { role: "tool", tool_call_id: "a", content: [blank] },
        { role: "user", content: [blank, { type: "text", text: " a" }] },
      ),
    ).toEqual([
      { role: "user", content: "Hi" },
      { role: "assistant", content: [call] },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "a" },
          { type: "text", text: " a" },
        ],
      },
    ]);
    expect(bodyOf({ messages: [{ role: "system", content: " \n" }, hi] })).not.toHaveProperty(
      "system",
    );
    // Their places still count for the thinking after them.
    const thought = (index: number) => ({ type: "thinking", index, thinking: "t", signature: "s" });
    const fields = { thinking_blocks: [thought(0), thought(2)] };
    const state = { from: "a/anthropic", fields };
    const { index: _, ...thinking } = thought(0);
    for (const content of ["\n\n", [blank]])
      expect(messagesOf(hi, { role: "assistant", content, tool_calls, state })).toEqual([
        { role: "user", content: "Hi" },
        { role: "assistant", content: [thinking, thinking, call] },
      ]);
  });

  it("have no empty texts, and are left out if nothing remains", () => {
    const empty = { type: "text", text: "" } as const;
    expect(
      messagesOf(
        { role: "user", content: "" },
        { role: "user", content: [empty, { type: "text", text: "a" }] },
        { role: "assistant", content: null },
        { role: "assistant", content: [empty], refusal: "No." },
      ),
    ).toEqual([
      { role: "user", content: [{ type: "text", text: "a" }] },
      { role: "assistant", content: [{ type: "text", text: "No." }] },
    ]);
  });

  it("give all instructions to the system prompt, with their breakpoints", () => {
    const system = (...messages: readonly Message[]) => bodyOf({ messages })["system"];
    expect(system({ role: "system", content: "Be brief." }, hi)).toBe("Be brief.");
    expect(
      system({ role: "system", content: [{ type: "text", text: "a", state: mark }] }, hi, {
        role: "developer",
        content: "b",
        state: mark,
      }),
    ).toEqual([
      { type: "text", text: "a", cache_control },
      { type: "text", text: "b", cache_control },
    ]);
    expect(bodyOf({})).not.toHaveProperty("system");
  });

  it("leave later instructions in their place with the beta for it", () => {
    const anthropic = { betas: ["mid-conversation-system-2026-04-07"] };
    const messages: readonly Message[] = [
      { role: "system", content: "a" },
      { role: "user", content: "" },
      { role: "system", content: "b" },
      hi,
      { role: "developer", content: "c" },
      { role: "system", content: "", state: mark },
      { role: "assistant", content: "d" },
      { role: "system", content: [{ type: "text", text: "e", state: mark }] },
    ];
    expect(bodyOf({ messages, anthropic })).toMatchObject({
      system: [
        { type: "text", text: "a" },
        { type: "text", text: "b" },
      ],
      messages: [
        { role: "user", content: "Hi" },
        { role: "system", content: "c" },
        { role: "assistant", content: "d" },
        { role: "system", content: [{ type: "text", text: "e", cache_control }] },
      ],
    });
  });

  it("mark the last block for a whole message that has a breakpoint", () => {
    const text = 'with "cache_control": in it';
    const sent = messagesOf({ role: "user", content: [{ type: "text", text }], state: mark });
    expect(sent).toEqual([{ role: "user", content: [{ type: "text", text, cache_control }] }]);
  });
});

describe("a growing conversation", () => {
  const filler: Message = { role: "user", content: "x".repeat(10_000) };
  const text = fc.constantFrom("", "a", "ü");
  const message: fc.Arbitrary<Message> = fc.oneof(
    fc.record({ role: fc.constantFrom("system" as const, "user" as const), content: text }),
    fc.record({ role: fc.constant("assistant" as const), content: text }),
    fc.record({ role: fc.constant("tool" as const), tool_call_id: text, content: text }),
  );

  it.each([
    ["moved", {}],
    ["kept", { anthropic: { betas: ["mid-conversation-system-2026-04-07"] } }],
  ])("sends the same bytes and digest as a new one, with instructions %s", (_, options) => {
    fc.assert(
      fc.property(fc.array(fc.array(message, { maxLength: 4 }), { maxLength: 5 }), (added) => {
        const write = createRequestWriter({});
        let before: readonly Message[] = [filler];
        for (const more of added) {
          const request = { messages: [...before, ...more], ...options };
          const call = { model: "", upstreamName: "m", request, outputCap: 9, stream: true };
          const whole = createRequestWriter({})(call);
          const continued = write({ ...call, continues: before });
          expect(continued.body.toString()).toBe(whole.body.toString());
          const digest = createHash("sha256").update(whole.body).digest("hex");
          expect([continued.sha256(), whole.sha256()]).toEqual([digest, digest]);
          before = request.messages;
        }
      }),
    );
  });
});

it("counts the tokens of the same request without what only an answer needs", () => {
  const request = {
    messages: [{ role: "system", content: "s" } as const, hi],
    tools,
    temperature: 1,
    maxOutputTokens: 5,
  };
  const signal = new AbortController().signal;
  const limits = { eventBytes: 1, totalBytes: 1, bodyBytes: 1 };
  const call = { model: "", upstreamName: "m", request, credential: null, signal, limits };
  expect(JSON.parse(createCountWriter({})(call))).toEqual({
    model: "m",
    system: "s",
    messages: [{ role: "user", content: "Hi" }],
    tools: [{ name: "add", input_schema: { type: "object", properties: {} } }],
  });
});
