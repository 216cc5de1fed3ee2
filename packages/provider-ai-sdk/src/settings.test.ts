import type { CompletionRequest } from "@tollgate/core/provider";
import { describe, expect, it } from "vitest";
import { settingsOf } from "./settings.ts";

const messages: CompletionRequest["messages"] = [{ role: "user", content: "Hi" }];
const settings = (request: Partial<CompletionRequest>) => settingsOf({ messages, ...request }, {});

describe("the settings of a call", () => {
  it("are empty if the request sets none", () => {
    expect(settings({})).toEqual({});
  });

  it("carry sampling, limits and stop sequences", () => {
    const sampling = { temperature: 0, topP: 0.5, frequencyPenalty: 1, presencePenalty: -1 };
    const request = { ...sampling, seed: 7, maxOutputTokens: 100 };
    expect(settings({ ...request, stop: "END" })).toEqual({ ...request, stopSequences: ["END"] });
    expect(settings({ stop: ["a", "b"] })).toEqual({ stopSequences: ["a", "b"] });
  });

  it("carry tools, and a tool choice only if there are tools", () => {
    const tools = [
      { name: "add", description: "adds", parameters: { type: "object" }, strict: true },
      { name: "now" },
    ];
    expect(settings({ tools, toolChoice: { name: "add" } })).toEqual({
      tools: [
        {
          type: "function",
          name: "add",
          description: "adds",
          inputSchema: { type: "object" },
          strict: true,
        },
        { type: "function", name: "now", inputSchema: { type: "object", properties: {} } },
      ],
      toolChoice: { type: "tool", toolName: "add" },
    });
    expect(settings({ tools: [], toolChoice: "required" })).toEqual({});
    expect(settings({ tools, toolChoice: "none" }).toolChoice).toEqual({ type: "none" });
  });

  it("carry the response format", () => {
    expect(settings({ responseFormat: { type: "text" } }).responseFormat).toEqual({ type: "text" });
    expect(settings({ responseFormat: { type: "json_object" } }).responseFormat).toEqual({
      type: "json",
    });
    const schema = { type: "object", properties: {} };
    const format = { type: "json_schema" as const, name: "city", schema, strict: true };
    expect(settings({ responseFormat: format }).responseFormat).toEqual({
      type: "json",
      name: "city",
      schema,
    });
  });

  it("carry reasoning effort, and refuse an unknown one", () => {
    expect(settings({ reasoningEffort: "xhigh" })).toEqual({ reasoning: "xhigh" });
    expect(() => settings({ reasoningEffort: "enormous" })).toThrowError(
      expect.objectContaining({ status: 400, param: "reasoning_effort" }),
    );
  });

  it.each([
    ["logprobs", { logprobs: true }],
    ["top_logprobs", { topLogprobs: 2 }],
    ["logit_bias", { logitBias: { "50256": -100 } }],
  ] as const)("refuse %s, which would change the answer", (param, request) => {
    expect(() => settings(request)).toThrowError(
      expect.objectContaining({ status: 400, delivery: "answered", param }),
    );
  });

  it("omit the user and the storage options", () => {
    expect(
      settings({
        user: "u",
        metadata: { a: "b" },
        store: true,
        promptCacheKey: "k",
        safetyIdentifier: "s",
        logprobs: false,
        topLogprobs: 0,
        logitBias: {},
      }),
    ).toEqual({});
  });

  it("write vendor-specific options in each vendor's terms, and let the embedder override them", () => {
    expect(settings({ parallelToolCalls: false, verbosity: "low" }).providerOptions).toEqual({
      openai: { parallelToolCalls: false, textVerbosity: "low" },
      mistral: { parallelToolCalls: false },
      anthropic: { disableParallelToolUse: true },
    });
    const ours = { messages, parallelToolCalls: true };
    const theirs = { openai: { parallelToolCalls: false }, google: { a: 1 } };
    expect(settingsOf(ours, theirs).providerOptions).toMatchObject(theirs);
  });

  it("pass a service tier to the vendors that know it", () => {
    expect(settings({ serviceTier: "flex" }).providerOptions).toMatchObject({
      openai: { serviceTier: "flex" },
      groq: { serviceTier: "flex" },
    });
    const priority = settings({ serviceTier: "priority" }).providerOptions;
    expect(priority).toMatchObject({ openai: { serviceTier: "priority" } });
    expect(priority).not.toHaveProperty("groq");
    expect(settings({ serviceTier: "scale" }).providerOptions).toMatchObject({ openai: {} });
  });

  it.each([
    [true, true],
    [false, false],
    [undefined, false],
  ])("ask for a strict schema only if the client does: %s", (strict, strictJsonSchema) => {
    const asked = strict === undefined ? {} : { strict };
    const responseFormat = { type: "json_schema", name: "n", schema: {}, ...asked } as const;
    const { providerOptions } = settings({ responseFormat });
    for (const vendor of ["openai", "openaiCompatible", "groq", "mistral"])
      expect(providerOptions?.[vendor]).toEqual({ strictJsonSchema });
    const plain = settings({ responseFormat: { type: "json_object" } });
    expect(plain.providerOptions).toBeUndefined();
  });

  it("refuse an invalid schema", () => {
    expect(() => settings({ tools: [{ name: "add", parameters: true }] })).toThrowError(
      expect.objectContaining({ status: 400 }),
    );
  });
});

/** Whether the AI SDK gets each member of a request, and an example. A new member must be listed here. */
const members: Readonly<{
  [Name in keyof CompletionRequest]-?: readonly [
    use: "set" | "rejected" | "kept" | "prompt",
    example: NonNullable<CompletionRequest[Name]>,
  ];
}> = {
  messages: ["prompt", messages],
  tools: ["set", [{ name: "now" }]],
  toolChoice: ["set", "required"],
  parallelToolCalls: ["set", false],
  responseFormat: ["set", { type: "json_object" }],
  reasoningEffort: ["set", "low"],
  verbosity: ["set", "low"],
  temperature: ["set", 0.5],
  topP: ["set", 0.5],
  frequencyPenalty: ["set", 1],
  presencePenalty: ["set", 1],
  seed: ["set", 7],
  logitBias: ["rejected", { "5": 1 }],
  logprobs: ["rejected", true],
  topLogprobs: ["rejected", 2],
  stop: ["set", "END"],
  maxOutputTokens: ["set", 9],
  user: ["kept", "ada"],
  metadata: ["kept", { team: "a" }],
  store: ["kept", true],
  promptCacheKey: ["kept", "k"],
  safetyIdentifier: ["kept", "s"],
  serviceTier: ["set", "flex"],
  thinking: ["set", { type: "enabled", budgetTokens: 2_048 }],
  topK: ["set", 40],
  anthropic: ["kept", { betas: ["context-1m-2025-08-07"] }],
};

describe("every member of a request", () => {
  it.each(Object.entries(members))("sets, rejects or keeps %s", (member, [use, example]) => {
    const tools = member === "tools" ? [] : [{ name: "now" }];
    const call = () => settings({ tools, [member]: example });
    if (use === "rejected") return expect(call).toThrow("don't support this parameter");
    const changes = JSON.stringify(call()) !== JSON.stringify(settings({ tools }));
    expect(changes).toBe(use === "set");
  });
});
