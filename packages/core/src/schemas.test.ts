import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { defaultLimits } from "./domain/limits.ts";
import { GatewayError } from "./errors/gateway-error.ts";
import { requestSchema } from "./schemas.ts";
import { parseChatCompletion } from "./wire/chat-completions/parse.ts";
import { parseResponse } from "./wire/responses/parse.ts";

const functionTool = { name: "f", description: "d", parameters: { type: "object" }, strict: true };
const cache = { cache_control: { type: "ephemeral" } };
const image = "https://images.test/a.png";
const shared = {
  stream: false,
  session_id: "0190a000-0000-7000-8000-000000000000",
  parallel_tool_calls: true,
  temperature: 0.5,
  top_p: 1,
  store: true,
  user: "u",
  metadata: { a: "b" },
  service_tier: "flex",
  top_logprobs: 2,
};

const chat = {
  ...shared,
  model: "sim/tollgate/echo",
  messages: [
    { role: "system", content: "s", name: "n", kept: 1 },
    {
      role: "user",
      content: [
        { type: "text", text: "t", ...cache },
        { type: "image_url", image_url: { url: image, detail: "low" } },
      ],
    },
    {
      role: "assistant",
      content: null,
      tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }],
      reasoning_content: "r",
    },
    { role: "tool", tool_call_id: "c", content: "x" },
  ],
  tools: [{ type: "function", function: functionTool }],
  tool_choice: { type: "function", function: { name: "f" } },
  response_format: { type: "json_schema", json_schema: { name: "j", schema: {}, strict: true } },
  stream_options: { include_usage: true },
  logprobs: true,
  logit_bias: { "1": 5 },
  max_completion_tokens: 10,
  stop: ["a"],
  n: 1,
  seed: 1,
  modalities: ["text"],
  reasoning: { effort: "low" },
};

const response = {
  ...shared,
  model: "sim/tollgate/echo",
  instructions: "i",
  input: [
    { role: "user", content: "q" },
    { type: "message", role: "user", content: [{ type: "input_image", image_url: image }] },
    { type: "function_call", call_id: "c", name: "f", arguments: "{}" },
    { type: "function_call_output", call_id: "c", output: [{ type: "input_text", text: "x" }] },
    { type: "reasoning", summary: [{ type: "summary_text", text: "r" }], id: "rs" },
    { role: "assistant", content: [{ type: "output_text", text: "a", annotations: [] }] },
  ],
  tools: [{ type: "function", ...functionTool }],
  tool_choice: "auto",
  text: { format: { type: "text" }, verbosity: "low" },
  reasoning: { effort: "low" },
  max_output_tokens: 10,
  truncation: "auto",
  include: ["reasoning.encrypted_content"],
  background: false,
};

const bodies = [
  ["chat_completions", chat, parseChat],
  ["responses", response, parseAnswer],
] as const;

function parseChat(body: unknown): unknown {
  return parseChatCompletion(body, defaultLimits);
}

function parseAnswer(body: unknown): unknown {
  return parseResponse(body, defaultLimits, { toolOutputs: "parts" });
}

/** The codes of faults that the tables express: types, names, presence and support. A schema can't express the others. */
const ofTables = new Set([
  "invalid_type",
  "unknown_parameter",
  "unsupported_parameter",
  "missing_required_parameter",
]);

type Path = readonly (string | number)[];

function pathsOf(value: unknown, path: Path = []): readonly Path[] {
  if (typeof value !== "object" || value === null) return [path];
  const inner = Object.entries(value).flatMap(([name, one]) =>
    pathsOf(one, [...path, Array.isArray(value) ? Number(name) : name]),
  );
  return path.length === 0 ? inner : [path, ...inner];
}

const removed = Symbol("removed");

function withValue(value: unknown, [name, ...rest]: Path, to: unknown): unknown {
  if (name === undefined) return to;
  const copy: object = Array.isArray(value) ? [...value] : { ...Object(value) };
  const next = withValue(Reflect.get(copy, name), rest, to);
  if (next === removed) Reflect.deleteProperty(copy, name);
  else Reflect.set(copy, name, next);
  return copy;
}

function errorOf(parse: (body: unknown) => unknown, body: unknown): string | null {
  try {
    parse(body);
    return null;
  } catch (thrown) {
    if (thrown instanceof GatewayError) return thrown.code;
    throw thrown;
  }
}

describe.each(bodies)("the JSON Schema of %s", (endpoint, valid, parse) => {
  const takes = new Ajv2020({ strict: false }).compile(requestSchema(endpoint));

  it("accepts everything that the reader accepts", () => {
    expect(errorOf(parse, valid)).toBeNull();
    expect(takes(valid), JSON.stringify(takes.errors)).toBe(true);
  });

  it("rejects the faults that the tables can express, as the reader does", () => {
    const paths = pathsOf(valid);
    const wrong = [null, removed, 7, -1.5, "word", true, [], {}, [7], { unknown: 1 }, { audio: 1 }];
    const fault = fc.record({
      path: fc.constantFrom(...paths, ["mistyped"], ["audio"], ["prompt"], ["reasoning", "x"]),
      to: fc.constantFrom<unknown>(...wrong),
    });
    let [refused, taken] = [0, 0];
    fc.assert(
      fc.property(fc.array(fault, { minLength: 1, maxLength: 2 }), (faults) => {
        const written = faults.reduce<unknown>(
          (body, { path, to }) => withValue(body, path, to),
          valid,
        );
        const body: unknown = JSON.parse(JSON.stringify(written));
        const code = errorOf(parse, body);
        const isTaken = takes(body);
        const told = JSON.stringify({ faults, code, errors: isTaken ? null : takes.errors?.[0] });
        if (code === null) expect(isTaken, told).toBe(true);
        else if (ofTables.has(code)) expect(isTaken, told).toBe(false);
        if (code === null) taken++;
        else refused++;
      }),
      { numRuns: 1_500 },
    );
    expect(Math.min(refused, taken)).toBeGreaterThan(50);
  });
});
