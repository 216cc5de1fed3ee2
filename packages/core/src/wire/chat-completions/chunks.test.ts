import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CompletionFold } from "../../domain/completion.ts";
import type { CompletionEvent } from "../../domain/completion-event.ts";
import type { Usage } from "../../domain/usage.ts";
import { GatewayError } from "../../errors/gateway-error.ts";
import { chatCompletionBody } from "./body.ts";
import { ChunkWriter } from "./chunks.ts";

const head = {
  id: "chatcmpl-1",
  created: 1_790_000_000,
  model: "sim/acme/echo",
  systemFingerprint: () => "fp_1",
  sessionId: "0190a000-0000-7000-8000-000000000001",
  turnId: "0190a000-0000-7000-8000-000000000002",
};
const usage: Usage = { promptTokens: 1, completionTokens: 2, totalTokens: 3 };

interface ChunkLine {
  readonly choices: readonly {
    readonly delta: Record<string, unknown>;
    readonly logprobs: { readonly content: readonly unknown[] } | null;
    readonly finish_reason: string | null;
  }[];
  readonly usage: unknown;
  readonly system_fingerprint?: unknown;
  readonly error?: unknown;
}

/** The data of a stream's events, having checked that it holds nothing else. */
function dataOf(stream: string): readonly string[] {
  const events = stream.split("\n\n");
  expect(events.pop()).toBe("");
  return events.map((event) => {
    expect(event).toMatch(/^data: [^\r\n]*$/);
    return event.slice("data: ".length);
  });
}

function chunksOf(stream: string): readonly ChunkLine[] {
  const data = [...dataOf(stream)];
  expect(data.pop()).toBe("[DONE]");
  return data.map((line): ChunkLine => JSON.parse(line));
}

describe("ChunkWriter", () => {
  it("writes the bytes of section 2.3 and 6.1", () => {
    const writer = new ChunkWriter({ ...head, includeUsage: true });
    const before = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1790000000,"model":"sim/acme/echo","system_fingerprint":"fp_1","choices":[`;
    const after = `,"session_id":"${head.sessionId}","turn_id":"${head.turnId}"}\n\n`;
    const choice = (delta: string, finish = "null") =>
      `${before}{"index":0,"delta":${delta},"logprobs":null,"finish_reason":${finish}}],"usage":null${after}`;
    expect(writer.write([{ type: "text-delta", text: "Hel" }])).toBe(
      choice('{"role":"assistant","content":"","refusal":null}') + choice('{"content":"Hel"}'),
    );
    expect(
      writer.write([
        { type: "reasoning-delta", text: "hm" },
        { type: "refusal-delta", text: "I can" },
        { type: "tool-call-started", index: 0, id: "call_1", name: "get_weather" },
        { type: "tool-call-delta", index: 0, arguments: '{"lo' },
      ]),
    ).toBe(
      choice('{"reasoning_content":"hm"}') +
        choice('{"refusal":"I can"}') +
        choice(
          '{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"get_weather","arguments":""}}]}',
        ) +
        choice('{"tool_calls":[{"index":0,"function":{"arguments":"{\\"lo"}}]}'),
    );
    expect(writer.finish("tool_calls", { ...usage, cachedTokens: 0, reasoningTokens: 1 })).toBe(
      `${choice("{}", '"tool_calls"')}${before}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":1}}${after}data: [DONE]\n\n`,
    );
  });

  it("writes state where clients look for it", () => {
    const writer = new ChunkWriter({ ...head, includeUsage: false });
    const extra = { extra_content: { google: { thought_signature: "s" } } };
    const stream =
      writer.write([
        { type: "reasoning-delta", text: "hm", field: "reasoning" },
        { type: "state", fields: { reasoning_details: [{ type: "reasoning.text", text: "hm" }] } },
        { type: "tool-call-started", index: 0, id: "call_1", name: "f" },
        { type: "state", index: 0, fields: extra },
      ]) +
      writer.write([{ type: "state", index: 0, fields: extra }]) +
      writer.finish("tool_calls", usage);
    expect(chunksOf(stream).map((chunk) => chunk.choices[0]?.delta)).toEqual([
      { role: "assistant", content: "", refusal: null },
      { reasoning: "hm" },
      { reasoning_details: [{ type: "reasoning.text", text: "hm" }] },
      {
        tool_calls: [
          {
            index: 0,
            id: "call_1",
            type: "function",
            function: { name: "f", arguments: "" },
            ...extra,
          },
        ],
      },
      { tool_calls: [{ index: 0, ...extra }] },
      {},
    ]);
  });

  it("writes nothing for events that the client doesn't see", () => {
    const writer = new ChunkWriter({ ...head, includeUsage: false });
    const unseen: readonly CompletionEvent[] = [
      { type: "request-sent", host: "h", bodySha256: "0" },
      { type: "answer-started", providerRequestId: "secret" },
      { type: "text-delta", text: "" },
      { type: "reasoning-delta", text: "" },
      { type: "refusal-delta", text: "" },
      { type: "tool-call-delta", index: 0, arguments: "" },
      { type: "usage", usage: { promptTokens: 1 } },
      { type: "finish", reason: "stop" },
    ];
    expect(writer.write(unseen)).toBe("");
  });

  it("begins an empty answer with the role, and omits usage unless requested", () => {
    const chunks = chunksOf(
      new ChunkWriter({ ...head, includeUsage: false }).finish("stop", usage),
    );
    expect(chunks.map((chunk) => chunk.choices[0]?.delta)).toEqual([
      { role: "assistant", content: "", refusal: null },
      {},
    ]);
    expect(chunks.map((chunk) => chunk.usage)).toEqual([null, null]);
  });

  it("shows sources and images next to the text, in a stream as in a body", () => {
    const [first, second] = [{ type: "url_citation" }, { type: "url_citation", title: "t" }];
    const image = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } };
    const events: readonly CompletionEvent[] = [
      { type: "shown", name: "annotations", entries: [first] },
      { type: "shown", name: "annotations", entries: [second] },
      { type: "shown", name: "images", entries: [image] },
      { type: "finish", reason: "stop" },
    ];
    const writer = new ChunkWriter({ ...head, includeUsage: false });
    const chunks = chunksOf(writer.write(events) + writer.finish("stop", usage));
    const deltas = chunks.map((chunk) => chunk.choices[0]?.delta);
    expect(deltas.slice(1, -1)).toEqual([
      { annotations: [first] },
      { annotations: [second] },
      { images: [image] },
    ]);
    const fold = new CompletionFold();
    for (const event of events) fold.add(event);
    expect(JSON.parse(chatCompletionBody(head, fold.completion(), usage))).toMatchObject({
      system_fingerprint: "fp_1",
      choices: [{ message: { annotations: [first, second], images: [image] } }],
    });
  });

  it("reads the configuration when it writes the first chunk", () => {
    let fingerprint = "";
    const writer = new ChunkWriter({
      ...head,
      includeUsage: false,
      systemFingerprint: () => fingerprint,
    });
    fingerprint = "fp_2";
    const chunks = chunksOf(
      writer.write([{ type: "text-delta", text: "a" }]) + writer.finish("stop", usage),
    );
    expect(new Set(chunks.map((chunk) => chunk.system_fingerprint))).toEqual(new Set(["fp_2"]));
  });

  it("ends a failed stream with the error and no finish reason", () => {
    const writer = new ChunkWriter({ ...head, includeUsage: true });
    const stream =
      writer.write([{ type: "text-delta", text: "a" }]) +
      writer.fail(new GatewayError("upstream_error", "The provider failed."));
    const chunks = chunksOf(stream);
    expect(chunks.at(-1)).toEqual({
      error: {
        message: "The provider failed.",
        type: "server_error",
        param: null,
        code: "upstream_error",
      },
    });
    expect(
      chunks.flatMap(({ choices = [] }) => choices.map((choice) => choice.finish_reason)),
    ).toEqual([null, null]);
  });
});

/** Text that tries to break out of its line. */
const hostile = fc.oneof(
  fc.string({ unit: "binary" }),
  fc
    .array(fc.constantFrom("\n", "\r", "\r\n\r\n", "data: ", "\u2028", "\ud800", '"', "\\", "\0"))
    .map((parts) => parts.join("")),
);
const delta = fc.oneof(
  fc.record({
    type: fc.constantFrom(
      "text-delta" as const,
      "reasoning-delta" as const,
      "refusal-delta" as const,
    ),
    text: hostile,
  }),
  fc.record({
    type: fc.constant("tool-call-delta" as const),
    index: fc.nat(2),
    arguments: hostile,
  }),
  fc.record({
    type: fc.constant("logprobs" as const),
    logprobs: fc.record({
      content: fc.array(fc.record({ token: hostile, logprob: fc.integer() })),
    }),
  }),
);
const answers: fc.Arbitrary<readonly CompletionEvent[]> = fc
  .tuple(fc.array(hostile, { minLength: 3, maxLength: 3 }), fc.array(delta))
  .map(([names, deltas]) => [
    ...names.map((name, index) => ({
      type: "tool-call-started" as const,
      index,
      id: `call_${index}`,
      name,
    })),
    ...deltas,
    { type: "finish", reason: "stop" },
  ]);

describe("a streamed answer", () => {
  it("equals the plain body when joined, whatever it contains and however it is split", () => {
    fc.assert(
      fc.property(answers, fc.nat(), fc.boolean(), (events, cut, includeUsage) => {
        const writer = new ChunkWriter({ ...head, includeUsage });
        const half = cut % (events.length + 1);
        const stream =
          writer.write(events.slice(0, half)) +
          writer.write(events.slice(half)) +
          writer.finish("stop", usage);
        const fold = new CompletionFold();
        for (const event of events) fold.add(event);
        const body = JSON.parse(chatCompletionBody(head, fold.completion(), usage));
        expect(join(chunksOf(stream), includeUsage)).toEqual({
          content: body.choices[0].message.content ?? "",
          refusal: body.choices[0].message.refusal ?? "",
          reasoning: body.choices[0].message.reasoning_content ?? "",
          calls: body.choices[0].message.tool_calls,
          logprobs: body.choices[0].logprobs?.content ?? [],
          finish: body.choices[0].finish_reason,
        });
      }),
      { numRuns: 500 },
    );
  });
});

/** The answer that a client collects from the chunks. */
function join(chunks: readonly ChunkLine[], includeUsage: boolean): unknown {
  const text = { content: "", refusal: "", reasoning_content: "" };
  const calls: { id?: string; type?: string; function: { name?: string; arguments: string } }[] =
    [];
  const logprobs: unknown[] = [];
  const last = includeUsage ? chunks.at(-1) : undefined;
  if (last !== undefined) expect(last).toMatchObject({ choices: [], usage: { total_tokens: 3 } });
  const rest = includeUsage ? chunks.slice(0, -1) : chunks;
  for (const { choices, usage, ...common } of rest) {
    expect(usage).toBeNull();
    expect(common).toMatchObject({ id: head.id, session_id: head.sessionId, turn_id: head.turnId });
    for (const choice of choices) {
      for (const name of ["content", "refusal", "reasoning_content"] as const)
        text[name] += choice.delta[name] ?? "";
      logprobs.push(...(choice.logprobs?.content ?? []));
      const parts = choice.delta["tool_calls"];
      if (Array.isArray(parts))
        for (const { index, ...part } of parts) {
          const before = calls[index]?.function.arguments ?? "";
          const call = calls[index] ?? part;
          calls[index] = {
            ...call,
            function: { ...call.function, arguments: before + part.function.arguments },
          };
        }
    }
  }
  return {
    content: text.content,
    refusal: text.refusal,
    reasoning: text.reasoning_content,
    calls,
    logprobs,
    finish: rest.at(-1)?.choices[0]?.finish_reason,
  };
}
