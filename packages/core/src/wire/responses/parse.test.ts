import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { defaultLimits } from "../../domain/limits.ts";
import { GatewayError } from "../../errors/gateway-error.ts";
import { parseResponse, type ResponseCall } from "./parse.ts";

const limits = { ...defaultLimits, messages: 3, tools: 2, stringBytes: 100 };
const tool = { type: "function", name: "get_weather" };
const base = { model: "sim/acme/echo", input: "Hello" };
const sessionId = "0190A000-0000-7000-8000-00000000000A";
const read = (body: unknown): ResponseCall => parseResponse(body, limits);

/** The code and the path of a refusal. */
function refusal(body: unknown): readonly [string, string | null] {
  try {
    read(body);
  } catch (error) {
    if (error instanceof GatewayError && error.status === 400) return [error.code, error.param];
    throw error;
  }
  throw new Error("the body was accepted");
}

/** A field's value, with what becomes of it in the call. */
type Accepted = readonly [field: string, value: unknown, call: object];
const option = (field: string, value: unknown, name: string): Accepted => [
  field,
  value,
  { options: { [name]: value }, echo: { [field]: value } },
];
const asked = (field: string, value: unknown, options: object): Accepted => [
  field,
  value,
  { options },
];
const noEffect = (field: string, value: unknown): Accepted => [field, value, read(base)];

const schema = { $schema: "http://json-schema.org/draft-07/schema#", type: "object" };

const accepted: readonly Accepted[] = [
  ["stream", true, { stream: true }],
  ["store", false, { store: false, options: { store: false } }],
  ["store", true, { store: true, options: { store: true } }],
  ["instructions", "Be brief.", { instructions: "Be brief.", echo: { instructions: "Be brief." } }],
  ["previous_response_id", "resp_1", { previousResponseId: "resp_1" }],
  ["previous_response_id", "", { previousResponseId: "" }],
  ["session_id", sessionId, { sessionId: sessionId.toLowerCase() }],
  ["turn_id", sessionId, { turnId: sessionId.toLowerCase() }],
  option("temperature", 0, "temperature"),
  option("temperature", 2, "temperature"),
  option("top_p", 0.5, "topP"),
  option("presence_penalty", -2, "presencePenalty"),
  option("frequency_penalty", 2, "frequencyPenalty"),
  option("max_output_tokens", 1, "maxOutputTokens"),
  option("user", "u", "user"),
  option("metadata", { a: "b" }, "metadata"),
  option("prompt_cache_key", "k", "promptCacheKey"),
  option("safety_identifier", "s", "safetyIdentifier"),
  // The echo has the tier it is served at, once that is known.
  ...["default", "flex", "scale", "priority", "fast", "ultrafast"].map(
    (serviceTier): Accepted => [
      "service_tier",
      serviceTier,
      { options: { serviceTier }, echo: { service_tier: "default" } },
    ],
  ),
  ["service_tier", "auto", { echo: { service_tier: "default" } }],
  [
    "tools",
    [{ ...tool, strict: null, description: null, parameters: schema, defer_loading: false }],
    {
      options: { tools: [{ name: "get_weather", parameters: schema }] },
      echo: { tools: [{ ...tool, description: null, parameters: schema, strict: null }] },
    },
  ],
  ["tools", [], { echo: { tools: [] } }],
  ["tool_choice", "auto", { echo: { tool_choice: "auto" } }],
  ["tool_choice", "none", { echo: { tool_choice: "none" } }],
  ["parallel_tool_calls", false, { echo: { parallel_tool_calls: false } }],
  noEffect("text", {}),
  asked("text", { verbosity: "low" }, { verbosity: "low" }),
  asked("text", { format: { type: "text" } }, { responseFormat: { type: "text" } }),
  asked("text", { format: { type: "json_object" } }, { responseFormat: { type: "json_object" } }),
  [
    "text",
    { format: { type: "json_schema", name: "a", schema, strict: null } },
    {
      options: { responseFormat: { type: "json_schema", name: "a", schema } },
      echo: { text: { format: { type: "json_schema", name: "a", schema, strict: false } } },
    },
  ],
  [
    "reasoning",
    { effort: "a later one", summary: "auto" },
    {
      options: { reasoningEffort: "a later one" },
      echo: { reasoning: { effort: "a later one", summary: "auto" } },
    },
  ],
  ["reasoning", { generate_summary: "concise" }, { echo: { reasoning: { summary: "concise" } } }],
  noEffect("reasoning", { effort: null, summary: null, context: null, mode: null }),
  ["truncation", "auto", { echo: { truncation: "auto" } }],
  noEffect("truncation", "disabled"),
  noEffect("include", []),
  noEffect("include", ["message.output_text.logprobs"]),
  ["include", ["reasoning.encrypted_content"], { includesState: true }],
  noEffect("stream_options", { include_obfuscation: true }),
  noEffect("client_metadata", { originator: "cli", nested: [1] }),
  noEffect("top_logprobs", 0),
  [
    "top_logprobs",
    20,
    { options: { logprobs: true, topLogprobs: 20 }, echo: { top_logprobs: 20 } },
  ],
  noEffect("background", false),
  noEffect("prompt_cache_retention", "24h"),
  noEffect("prompt_cache_options", {}),
];

describe("a field of section 2.5", () => {
  it.each(accepted)("%s = %j is accepted", (field, value, call) => {
    expect(read({ ...base, [field]: value })).toMatchObject(call);
  });

  it.each([...new Set(accepted.map(([field]) => field)), "conversation", "prompt", "moderation"])(
    "%s = null counts as absent",
    (field) => {
      expect(read({ ...base, [field]: null })).toEqual(read(base));
    },
  );

  it("has its default if it is absent", () => {
    expect(read(base)).toEqual({
      model: base.model,
      stream: false,
      sessionId: null,
      turnId: null,
      store: true,
      previousResponseId: null,
      instructions: null,
      includesState: false,
      input: [{ type: "message", role: "user", content: [{ type: "input_text", text: "Hello" }] }],
      options: { store: true },
      droppedFields: {},
      droppedFromInput: {},
      namespaces: new Map(),
      echo: {
        instructions: null,
        max_output_tokens: null,
        parallel_tool_calls: true,
        prompt_cache_key: null,
        reasoning: { effort: null, summary: null },
        safety_identifier: null,
        service_tier: "default",
        temperature: 1,
        text: { format: { type: "text" }, verbosity: "medium" },
        tool_choice: "auto",
        tools: [],
        top_logprobs: 0,
        top_p: 1,
        presence_penalty: 0,
        frequency_penalty: 0,
        truncation: "disabled",
        metadata: {},
      },
    });
  });

  it("that only concerns tools is sent upstream only if there are tools", () => {
    const parallel = { tool_choice: "auto", parallel_tool_calls: true };
    expect(read({ ...base, ...parallel }).options).toEqual({ store: true });
    const named = { type: "function", name: "get_weather" };
    expect(
      read({ ...base, tools: [tool], tool_choice: named, parallel_tool_calls: false }),
    ).toMatchObject({
      options: { toolChoice: { name: "get_weather" }, parallelToolCalls: false },
      echo: { tool_choice: named },
    });
  });
});

type Rejected = readonly [fields: object, code: string, param: string];

const hostedTools = [
  "web_search",
  "web_search_preview",
  "file_search",
  "computer",
  "computer_use_preview",
  "code_interpreter",
  "mcp",
  "image_generation",
  "local_shell",
  "shell",
  "apply_patch",
  "custom",
  "tool_search",
  "programmatic_tool_calling",
];

const rejected: readonly Rejected[] = [
  [{ model: undefined }, "missing_required_parameter", "model"],
  [{ model: null }, "missing_required_parameter", "model"],
  [{ model: 5 }, "invalid_type", "model"],
  [{ input: undefined }, "missing_required_parameter", "input"],
  [{ input: null }, "missing_required_parameter", "input"],
  [{ input: 5 }, "invalid_type", "input"],
  [{ input: {} }, "invalid_type", "input"],
  [{ input: [] }, "invalid_value", "input"],
  [{ input: [{ type: "reasoning", summary: [] }] }, "invalid_value", "input"],
  [{ input: Array(4).fill({ role: "user", content: "a" }) }, "invalid_value", "input"],
  [{ stream: "true" }, "invalid_type", "stream"],
  [{ store: 1 }, "invalid_type", "store"],
  [{ instructions: [] }, "invalid_type", "instructions"],
  [{ previous_response_id: 5 }, "invalid_type", "previous_response_id"],
  [{ session_id: "resp_1" }, "invalid_value", "session_id"],
  [{ turn_id: 5 }, "invalid_type", "turn_id"],
  [{ temperature: 2.1 }, "invalid_value", "temperature"],
  [{ top_p: -0.1 }, "invalid_value", "top_p"],
  [{ presence_penalty: 3 }, "invalid_value", "presence_penalty"],
  [{ max_output_tokens: 0 }, "invalid_value", "max_output_tokens"],
  [{ max_output_tokens: 1.5 }, "invalid_type", "max_output_tokens"],
  [{ top_logprobs: 21 }, "invalid_value", "top_logprobs"],
  [{ metadata: { a: 1 } }, "invalid_type", "metadata.a"],
  [{ safety_identifier: "x".repeat(65) }, "invalid_value", "safety_identifier"],
  [{ user: "x".repeat(101) }, "invalid_value", "user"],
  [{ service_tier: "slow" }, "invalid_value", "service_tier"],
  [{ truncation: "some" }, "invalid_value", "truncation"],
  [{ include: ["file_search_call.results"] }, "unsupported_value", "include[0]"],
  [{ include: "a" }, "invalid_type", "include"],
  [
    { stream_options: { include_usage: true } },
    "unknown_parameter",
    "stream_options.include_usage",
  ],
  [{ client_metadata: "a" }, "invalid_type", "client_metadata"],
  [{ tools: [{ type: "function" }] }, "missing_required_parameter", "tools[0].name"],
  [{ tools: [{ name: "a" }] }, "missing_required_parameter", "tools[0].type"],
  [{ tools: [tool, { ...tool, strict: "no" }] }, "invalid_type", "tools[1].strict"],
  [{ tools: [{ ...tool, parameters: "{}" }] }, "invalid_type", "tools[0].parameters"],
  [{ tools: [tool, tool, tool] }, "invalid_value", "tools"],
  ...hostedTools.map(
    (type): Rejected => [{ tools: [{ type }] }, "unsupported_value", "tools[0].type"],
  ),
  [{ tool_choice: "some" }, "invalid_value", "tool_choice"],
  [{ tool_choice: "required" }, "invalid_value", "tool_choice"],
  [{ tool_choice: 1 }, "invalid_type", "tool_choice"],
  [
    { tools: [tool], tool_choice: { type: "function", name: "b" } },
    "invalid_value",
    "tool_choice.name",
  ],
  [
    { tools: [tool], tool_choice: { type: "function" } },
    "missing_required_parameter",
    "tool_choice.name",
  ],
  [
    { tools: [tool], tool_choice: { type: "allowed_tools", mode: "auto", tools: [] } },
    "unsupported_value",
    "tool_choice.type",
  ],
  [{ tools: [tool], tool_choice: { type: "web_search" } }, "unsupported_value", "tool_choice.type"],
  [{ text: { format: { type: "grammar" } } }, "unsupported_value", "text.format.type"],
  [
    { text: { format: { type: "json_schema", schema } } },
    "missing_required_parameter",
    "text.format.name",
  ],
  [
    { text: { format: { type: "json_schema", name: "a" } } },
    "missing_required_parameter",
    "text.format.schema",
  ],
  [{ text: { verbosity: "loud" } }, "invalid_value", "text.verbosity"],
  [{ text: { stop: "a" } }, "unknown_parameter", "text.stop"],
  [{ reasoning: { effort: 5 } }, "invalid_type", "reasoning.effort"],
  [{ reasoning: { summary: "long" } }, "invalid_value", "reasoning.summary"],
  [{ reasoning: { mode: "fast" } }, "unsupported_parameter", "reasoning.mode"],
  [{ background: true }, "unsupported_value", "background"],
  [{ conversation: "conv_1" }, "unsupported_parameter", "conversation"],
  [{ conversation: { id: "conv_1" } }, "unsupported_parameter", "conversation"],
  [{ context_management: [{ type: "compaction" }] }, "unsupported_parameter", "context_management"],
  [{ prompt: { id: "p" } }, "unsupported_parameter", "prompt"],
  [{ max_tool_calls: 1 }, "unsupported_parameter", "max_tool_calls"],
  [{ moderation: {} }, "unsupported_parameter", "moderation"],
  [{ access_programs: {} }, "unsupported_parameter", "access_programs"],
  [{ image: {} }, "unsupported_parameter", "image"],
  [{ messages: [] }, "unknown_parameter", "messages"],
  [{ max_tokens: 5 }, "unknown_parameter", "max_tokens"],
  [{ response_format: { type: "text" } }, "unknown_parameter", "response_format"],
  [{ stop: ["a"] }, "unknown_parameter", "stop"],
];

describe("an unsupported field of Responses", () => {
  it.each(rejected)("%j is refused", (fields, code, param) => {
    expect(refusal({ ...base, ...fields })).toEqual([code, param]);
  });

  it.each([null, [], "a", 5])("a body that is %j is refused", (body) => {
    expect(refusal(body)[0]).toBe("invalid_type");
  });

  it("an empty input is accepted with a response to continue", () => {
    expect(read({ ...base, input: [], previous_response_id: "resp_1" }).input).toEqual([]);
  });
});

it("any JSON is either read or refused with a path", () => {
  const fields = fc.dictionary(
    fc.constantFrom(...accepted.map(([field]) => field), "input", "conversation"),
    fc.jsonValue({ maxDepth: 3 }),
  );
  fc.assert(
    fc.property(fields, (given) => {
      try {
        expect(read({ ...base, ...given }).model).toBe(base.model);
      } catch (error) {
        if (!(error instanceof GatewayError)) throw error;
        expect([error.status, typeof error.param]).toEqual([400, "string"]);
      }
    }),
    { numRuns: 500 },
  );
});
