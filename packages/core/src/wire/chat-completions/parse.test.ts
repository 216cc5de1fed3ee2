import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { defaultLimits } from "../../domain/limits.ts";
import { GatewayError } from "../../errors/gateway-error.ts";
import { type ChatCompletionCall, parseChatCompletion } from "./parse.ts";

const limits = { ...defaultLimits, messages: 5, tools: 3, stringBytes: 100 };
const tool = { type: "function", function: { name: "get_weather" } };
const base = { model: "sim/acme/echo", messages: [{ role: "user", content: "Hello" }] };
const read = (body: unknown): ChatCompletionCall => parseChatCompletion(body, limits);
const readWith = (fields: object): ChatCompletionCall => read({ ...base, ...fields });

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

type Rejected = readonly [value: unknown, code: string, param?: string];

/** One row of the field matrix: values that are accepted, with what they become, and values that are refused. */
interface Row {
  readonly field: string;
  readonly accepts: readonly (readonly [value: unknown, request: object])[];
  readonly rejects: readonly Rejected[];
}

const tooLong = "x".repeat(101);
const withTools = { tools: [tool] };
const offered = { tools: [{ name: "get_weather" }] };

const range = (field: string, name: string, least: number, most: number): Row => ({
  field,
  accepts: [least, most, (least + most) / 2].map((value) => [value, { [name]: value }]),
  rejects: [
    [least - 0.1, "invalid_value"],
    [most + 0.1, "invalid_value"],
    ["1", "invalid_type"],
    [true, "invalid_type"],
  ],
});

const flag = (field: string, name: string): Row => ({
  field,
  accepts: [true, false].map((value) => [value, { [name]: value }]),
  rejects: [
    ["true", "invalid_type"],
    [1, "invalid_type"],
  ],
});

const free = (field: string, name: string): Row => ({
  field,
  accepts: [["a word", { [name]: "a word" }]],
  rejects: [
    [5, "invalid_type"],
    [[], "invalid_type"],
    [tooLong, "invalid_value"],
  ],
});

const count = (field: string): Row => ({
  field,
  accepts: [
    [1, { maxOutputTokens: 1 }],
    [4_096, { maxOutputTokens: 4_096 }],
  ],
  rejects: [
    [0, "invalid_value"],
    [-1, "invalid_value"],
    [1.5, "invalid_type"],
    ["1", "invalid_type"],
  ],
});

const refused = (field: string, value: unknown): Row => ({
  field,
  accepts: [],
  rejects: [[value, "unsupported_parameter"]],
});

const rows: readonly Row[] = [
  range("temperature", "temperature", 0, 2),
  range("top_p", "topP", 0, 1),
  range("frequency_penalty", "frequencyPenalty", -2, 2),
  range("presence_penalty", "presencePenalty", -2, 2),
  flag("logprobs", "logprobs"),
  flag("store", "store"),
  free("user", "user"),
  free("prompt_cache_key", "promptCacheKey"),
  count("max_tokens"),
  count("max_completion_tokens"),
  {
    field: "reasoning_effort",
    accepts: ["none", "minimal", "xhigh", "a later one"].map((value) => [
      value,
      { reasoningEffort: value },
    ]),
    rejects: [
      [3, "invalid_type"],
      ["", "invalid_value"],
    ],
  },
  {
    field: "reasoning",
    accepts: [
      [{ effort: "high" }, { reasoningEffort: "high" }],
      [{ effort: "high", enabled: true }, { reasoningEffort: "high" }],
      [{ effort: "high", enabled: false }, { reasoningEffort: "none" }],
      [{ effort: null, exclude: null, enabled: null }, {}],
      [{}, {}],
    ],
    rejects: [
      ["high", "invalid_type"],
      [{ effort: 3 }, "invalid_type", "reasoning.effort"],
      [{ effort: "high", exclude: false }, "unsupported_parameter", "reasoning.exclude"],
      [{ max_tokens: 2_000 }, "unsupported_parameter", "reasoning.max_tokens"],
      [{ enabled: true }, "unsupported_value", "reasoning.enabled"],
      [{ enabled: "yes" }, "invalid_type", "reasoning.enabled"],
      [{ depth: 1 }, "unknown_parameter", "reasoning.depth"],
    ],
  },
  {
    field: "verbosity",
    accepts: ["low", "medium", "high"].map((verbosity) => [verbosity, { verbosity }]),
    rejects: [
      ["loud", "invalid_value"],
      [1, "invalid_type"],
    ],
  },
  {
    field: "seed",
    accepts: [
      [0, { seed: 0 }],
      [-7, { seed: -7 }],
      [Number.MAX_SAFE_INTEGER, { seed: Number.MAX_SAFE_INTEGER }],
    ],
    rejects: [
      [1.5, "invalid_type"],
      ["1", "invalid_type"],
    ],
  },
  {
    field: "logit_bias",
    accepts: [[{ "50256": -100, "1": 100 }, { logitBias: { "50256": -100, "1": 100 } }]],
    rejects: [
      [{ "1": 101 }, "invalid_value", "logit_bias.1"],
      [{ "1": "5" }, "invalid_type", "logit_bias.1"],
      [[1], "invalid_type"],
    ],
  },
  {
    field: "top_logprobs",
    accepts: [
      [0, { topLogprobs: 0 }],
      [20, { topLogprobs: 20 }],
    ],
    rejects: [
      [21, "invalid_value"],
      [-1, "invalid_value"],
      [1.5, "invalid_type"],
      ["1", "invalid_type"],
    ],
  },
  {
    field: "n",
    accepts: [[1, {}]],
    rejects: [
      [2, "unsupported_value"],
      [0, "invalid_value"],
      ["1", "invalid_type"],
    ],
  },
  {
    field: "stop",
    accepts: [
      ["end", { stop: "end" }],
      [["a"], { stop: ["a"] }],
      [["a", "b", "c", "d"], { stop: ["a", "b", "c", "d"] }],
    ],
    rejects: [
      [[], "invalid_value"],
      [["a", "b", "c", "d", "e"], "invalid_value"],
      [["a", 1], "invalid_type", "stop[1]"],
      [1, "invalid_type"],
    ],
  },
  {
    field: "stream_options",
    accepts: [
      [{}, {}],
      [{ include_usage: true, include_obfuscation: false }, {}],
      [{ include_usage: null, include_obfuscation: null }, {}],
    ],
    rejects: [
      [{ include_usage: "yes" }, "invalid_type", "stream_options.include_usage"],
      [{ include_obfuscation: 1 }, "invalid_type", "stream_options.include_obfuscation"],
      [{ other: 1 }, "unknown_parameter", "stream_options.other"],
      [true, "invalid_type"],
    ],
  },
  {
    field: "tools",
    accepts: [
      [[], {}],
      [[tool], offered],
      [
        [
          {
            ...tool,
            cache_control: {},
            function: {
              name: "f",
              description: "d",
              strict: true,
              parameters: { $schema: "s" },
              x: 1,
            },
          },
        ],
        {
          tools: [
            {
              name: "f",
              description: "d",
              strict: true,
              parameters: { $schema: "s" },
              state: { from: null, fields: { cache_control: {} } },
            },
          ],
        },
      ],
      [
        [{ ...tool, function: { name: "f", description: null, strict: null, parameters: null } }],
        { tools: [{ name: "f" }] },
      ],
    ],
    rejects: [
      [{}, "invalid_type"],
      [[tool, tool, tool, tool], "invalid_value"],
      [[{ type: "custom", custom: { name: "x" } }], "unsupported_value", "tools[0].type"],
      [[tool, { type: "web_search" }], "unsupported_value", "tools[1].type"],
      [[{ function: { name: "f" } }], "missing_required_parameter", "tools[0].type"],
      [[{ type: "function" }], "missing_required_parameter", "tools[0].function"],
      [
        [{ type: "function", function: {} }],
        "missing_required_parameter",
        "tools[0].function.name",
      ],
      [[{ type: "function", function: { name: "" } }], "invalid_value", "tools[0].function.name"],
      [
        [{ type: "function", function: { name: "x".repeat(256) } }],
        "invalid_value",
        "tools[0].function.name",
      ],
      [
        [{ type: "function", function: { name: "f", strict: 1 } }],
        "invalid_type",
        "tools[0].function.strict",
      ],
      [
        [{ type: "function", function: { name: "f", parameters: [] } }],
        "invalid_type",
        "tools[0].function.parameters",
      ],
      [["f"], "invalid_type", "tools[0]"],
    ],
  },
  {
    field: "tool_choice",
    accepts: [
      ["auto", {}],
      ["none", {}],
    ],
    rejects: [
      ["required", "invalid_value"],
      ["any", "invalid_value"],
      [1, "invalid_type"],
      [{ type: "allowed_tools", allowed_tools: {} }, "unsupported_value", "tool_choice.type"],
      [{ type: "custom", custom: { name: "x" } }, "unsupported_value", "tool_choice.type"],
      [{ type: "function" }, "missing_required_parameter", "tool_choice.function"],
      [{ function: { name: "f" } }, "missing_required_parameter", "tool_choice.type"],
      [
        { type: "function", function: { name: "f", x: 1 } },
        "unknown_parameter",
        "tool_choice.function.x",
      ],
    ],
  },
  {
    field: "parallel_tool_calls",
    accepts: [
      [true, {}],
      [false, {}],
    ],
    rejects: [["true", "invalid_type"]],
  },
  {
    field: "response_format",
    accepts: [
      [{ type: "text" }, { responseFormat: { type: "text" } }],
      [{ type: "json_object" }, { responseFormat: { type: "json_object" } }],
      [
        { type: "json_schema", json_schema: { name: "n", schema: { a: [1] }, strict: null } },
        { responseFormat: { type: "json_schema", name: "n", schema: { a: [1] } } },
      ],
      [
        { type: "json_schema", json_schema: { name: "n", description: "d", strict: false } },
        { responseFormat: { type: "json_schema", name: "n", description: "d", strict: false } },
      ],
    ],
    rejects: [
      [{ type: "grammar" }, "unsupported_value", "response_format.type"],
      [{}, "missing_required_parameter", "response_format.type"],
      [{ type: 1 }, "invalid_type", "response_format.type"],
      [{ type: "json_schema" }, "missing_required_parameter", "response_format.json_schema"],
      [
        { type: "json_schema", json_schema: {} },
        "missing_required_parameter",
        "response_format.json_schema.name",
      ],
      [
        { type: "json_schema", json_schema: { name: "n", schema: "s" } },
        "invalid_type",
        "response_format.json_schema.schema",
      ],
      [{ type: "text", x: 1 }, "unknown_parameter", "response_format.x"],
      ["json_object", "invalid_type"],
    ],
  },
  {
    field: "metadata",
    accepts: [
      [{}, { metadata: {} }],
      [{ a: "", b: "x".repeat(512) }, { metadata: { a: "", b: "x".repeat(512) } }],
    ],
    rejects: [
      [{ a: 1 }, "invalid_type", "metadata.a"],
      [{ a: null }, "invalid_type", "metadata.a"],
      [{ a: "x".repeat(513) }, "invalid_value", "metadata.a"],
      [{ ["k".repeat(65)]: "" }, "invalid_value", `metadata.${"k".repeat(64)}…`],
      [
        Object.fromEntries(Array.from({ length: 17 }, (_, key) => [`k${key}`, ""])),
        "invalid_value",
      ],
      [[], "invalid_type"],
      ["a", "invalid_type"],
    ],
  },
  {
    field: "safety_identifier",
    accepts: [["x".repeat(64), { safetyIdentifier: "x".repeat(64) }]],
    rejects: [
      ["x".repeat(65), "invalid_value"],
      [1, "invalid_type"],
    ],
  },
  {
    field: "service_tier",
    accepts: [
      ["auto", {}],
      ...["default", "flex", "scale", "priority", "fast"].map((serviceTier): [string, object] => [
        serviceTier,
        { serviceTier },
      ]),
    ],
    rejects: [
      ["ultrafast", "invalid_value"],
      ["gold", "invalid_value"],
      [1, "invalid_type"],
    ],
  },
  { field: "prompt_cache_retention", accepts: [["24h", {}]], rejects: [[24, "invalid_type"]] },
  { field: "prompt_cache_options", accepts: [[{ a: 1 }, {}]], rejects: [["a", "invalid_type"]] },
  {
    field: "modalities",
    accepts: [[["text"], {}]],
    rejects: [
      [["text", "audio"], "unsupported_value", "modalities[1]"],
      ["text", "invalid_type"],
    ],
  },
  refused("prediction", { type: "content", content: "x" }),
  refused("audio", { voice: "x", format: "mp3" }),
  refused("web_search_options", {}),
  refused("moderation", { model: "x" }),
  refused("functions", []),
  refused("function_call", "auto"),
];

describe.each(rows)("the field $field", ({ field, accepts, rejects }) => {
  it("is accepted with its values", () => {
    for (const [value, request] of accepts)
      expect(readWith({ [field]: value }).request).toEqual({ messages: base.messages, ...request });
  });

  it("may be null, which counts as absent", () => {
    expect(readWith({ [field]: null })).toEqual(read(base));
  });

  it("is refused with the code and the path of the fault", () => {
    for (const [value, code, param = field] of rejects)
      expect(refusal({ ...base, [field]: value })).toEqual([code, param]);
  });
});

describe("the fields that choose the form of the answer", () => {
  const id = "0190A000-0000-7000-8000-00000000000A";

  it("are off and absent by default", () => {
    expect(read(base)).toEqual({
      model: "sim/acme/echo",
      stream: false,
      includeUsage: false,
      sessionId: null,
      turnId: null,
      request: { messages: [{ role: "user", content: "Hello" }] },
      droppedFields: {},
      droppedFromMessages: {},
    });
    const nulls = { stream: null, stream_options: null, session_id: null, turn_id: null };
    expect(readWith(nulls)).toEqual(read(base));
  });

  it("ask for a stream and its usage", () => {
    expect(readWith({ stream: true, stream_options: { include_usage: true } })).toMatchObject({
      stream: true,
      includeUsage: true,
    });
    expect(refusal({ ...base, stream: "true" })).toEqual(["invalid_type", "stream"]);
  });

  it("name a Session and a Turn, in lower case", () => {
    expect(readWith({ session_id: id, turn_id: id })).toMatchObject({
      sessionId: id.toLowerCase(),
      turnId: id.toLowerCase(),
    });
    for (const field of ["session_id", "turn_id"]) {
      for (const value of ["", "x", `${id} `, `{${id}}`, id.replaceAll("-", "")])
        expect(refusal({ ...base, [field]: value })).toEqual(["invalid_value", field]);
      expect(refusal({ ...base, [field]: 1 })).toEqual(["invalid_type", field]);
    }
  });

  it("prefer max_completion_tokens", () => {
    expect(readWith({ max_tokens: 1, max_completion_tokens: 2 }).request.maxOutputTokens).toBe(2);
  });
});

describe("the body", () => {
  it("must have a model and messages", () => {
    expect(refusal({})).toEqual(["missing_required_parameter", "model"]);
    expect(refusal({ model: null, messages: [] })).toEqual(["missing_required_parameter", "model"]);
    expect(refusal({ model: "m" })).toEqual(["missing_required_parameter", "messages"]);
    expect(refusal({ model: 1, messages: [] })).toEqual(["invalid_type", "model"]);
    expect(refusal({ model: "m", messages: [] })).toEqual(["invalid_value", "messages"]);
    expect(refusal({ model: "m", messages: "hi" })).toEqual(["invalid_type", "messages"]);
    const six = Array.from({ length: 6 }, () => base.messages[0]);
    expect(refusal({ model: "m", messages: six })).toEqual(["invalid_value", "messages"]);
    for (const body of [null, [], "x", 1]) expect(refusal(body)[0]).toBe("invalid_type");
  });

  it.each([
    "top_k",
    "repetition_penalty",
    "include_reasoning",
    "extra_body",
    "guided_choice",
    "usage",
    "toString",
    "Model",
  ])("has no field %s", (field) => {
    expect(refusal({ ...base, [field]: 1 })).toEqual(["unknown_parameter", field]);
    expect(readWith({ [field]: null })).toEqual(read(base));
  });

  it("may contain the effort under both of its names, if they agree", () => {
    const both = { reasoning_effort: "low", reasoning: { effort: "low" } };
    expect(readWith(both).request.reasoningEffort).toBe("low");
    expect(refusal({ ...base, ...both, reasoning: { effort: "high" } })).toEqual([
      "invalid_value",
      "reasoning.effort",
    ]);
  });

  it("is refused for the same fault, whatever the order of its members", () => {
    const faulty = { n: 2, temperature: 9, model: 5, messages: [] };
    expect(refusal(faulty)).toEqual(["invalid_type", "model"]);
    expect(refusal({ ...faulty, unknown: 1 })).toEqual(["unknown_parameter", "unknown"]);
  });

  it("is never quoted in an error, except for names of members", () => {
    const secret = "hunter2";
    const bodies = rows.flatMap(({ field }) => [
      { ...base, [field]: secret.repeat(100) },
      { ...base, [field]: [secret] },
      { ...base, [field]: { type: secret, a: secret } },
    ]);
    for (const body of bodies) {
      try {
        read(body);
      } catch (error) {
        expect(String(error)).not.toContain(secret);
      }
    }
  });

  it("is either read or refused with 400, whatever it contains", () => {
    const fields = [...rows.map(({ field }) => field), "model", "messages", "stream", "session_id"];
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...fields), fc.jsonValue()), (body) => {
        try {
          read({ ...base, ...body });
        } catch (error) {
          expect(error).toBeInstanceOf(GatewayError);
          expect(error).toMatchObject({ status: 400, type: "invalid_request_error" });
        }
      }),
      { numRuns: 500 },
    );
  });

  it("shares no objects with the request except JSON Schemas", () => {
    const parameters = { type: "object", properties: { ["__proto__"]: { type: "string" } } };
    const body = {
      ...base,
      metadata: { a: "b" },
      tools: [{ type: "function", function: { name: "f", parameters } }],
    };
    const { request } = read(body);
    expect(request.messages[0]).not.toBe(body.messages[0]);
    expect(request.metadata).not.toBe(body.metadata);
    expect(request.tools?.[0]?.parameters).toBe(parameters);
  });
});

describe("tool use", () => {
  it("passes on the tool choice", () => {
    const choose = (tool_choice: unknown) => readWith({ ...withTools, tool_choice }).request;
    for (const word of ["none", "auto", "required"])
      expect(choose(word)).toMatchObject({ ...offered, toolChoice: word });
    expect(choose({ type: "function", function: { name: "get_weather" } })).toMatchObject({
      toolChoice: { name: "get_weather" },
    });
    expect(readWith({ ...withTools, parallel_tool_calls: false }).request).toMatchObject({
      parallelToolCalls: false,
    });
  });

  it("refuses a function that isn't among the tools", () => {
    const tool_choice = { type: "function", function: { name: "other" } };
    const fault = ["invalid_value", "tool_choice.function.name"];
    expect(refusal({ ...base, ...withTools, tool_choice })).toEqual(fault);
    expect(refusal({ ...base, tool_choice })).toEqual(["invalid_value", "tool_choice"]);
  });
});

it("bounds every string outside message content, those inside JSON Schemas too", () => {
  const long = "x".repeat(101);
  const withSchema = (schema: object) => {
    const parameters = { type: "object", properties: { a: schema } };
    return { ...base, tools: [{ ...tool, function: { name: "f", parameters } }] };
  };
  const at = "tools[0].function.parameters";
  for (const schema of [{ description: long }, { enum: ["short", [long]] }, { [long]: true }])
    expect(refusal(withSchema(schema))).toEqual(["invalid_value", at]);
  expect(read(withSchema({ description: "x".repeat(100) })).request.tools).toHaveLength(1);
});
