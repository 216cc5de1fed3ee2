import {
  type CompletionEvent,
  type CompletionRequest,
  type EmbeddingRequest,
  type FunctionTool,
  ProviderError,
} from "@tollgate/core/provider";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type SimOptions, simProvider } from "./sim-provider.ts";

const weather: FunctionTool = {
  name: "get_weather",
  parameters: {
    type: "object",
    properties: { city: { type: "string" }, unit: { enum: ["celsius", "fahrenheit"] } },
    required: ["city", "unit"],
    additionalProperties: false,
  },
};

function ask(text: string, more: Partial<CompletionRequest> = {}): CompletionRequest {
  return { messages: [{ role: "user", content: text }], ...more };
}

interface Asked {
  readonly stream?: boolean;
  readonly model?: string;
  readonly signal?: AbortSignal;
  readonly options?: SimOptions;
}

async function* batches(request: CompletionRequest, asked: Asked = {}) {
  yield* simProvider(asked.options).complete({
    model: asked.model ?? "tollgate/echo",
    upstreamName: asked.model ?? "tollgate/echo",
    request,
    stream: asked.stream ?? true,
    credential: null,
    signal: asked.signal ?? new AbortController().signal,
    limits: { eventBytes: 1_000_000, totalBytes: 1_000_000, bodyBytes: 4_194_304 },
    outputCap: 4_096,
    traceparent: null,
    connectWithin: 10_000,
  });
}

async function batchesOf(request: CompletionRequest, asked?: Asked) {
  const all: (readonly CompletionEvent[])[] = [];
  for await (const batch of batches(request, asked)) all.push(batch);
  return all;
}

async function eventsOf(request: CompletionRequest, asked?: Asked) {
  return (await batchesOf(request, asked)).flat();
}

function written(events: readonly CompletionEvent[]): string {
  return events
    .map((event) => {
      if (event.type === "text-delta") return event.text;
      return event.type === "tool-call-delta" ? event.arguments : "";
    })
    .join("");
}

async function answerTo(request: CompletionRequest): Promise<string> {
  return written(await eventsOf(request));
}

describe("the sim provider", () => {
  it("repeats the last user message, word by word, with usage and a finish", async () => {
    const events = await eventsOf(ask("good morning"));
    expect(events.map((event) => event.type)).toEqual([
      "request-sent",
      "answer-started",
      "text-delta",
      "text-delta",
      "text-delta",
      "text-delta",
      "usage",
      "finish",
    ]);
    expect(written(events)).toBe("You said: good morning");
    expect(events.at(-2)).toEqual({
      type: "usage",
      usage: { promptTokens: 5, completionTokens: 4 },
    });
  });

  it("gives equal requests equal answers, streamed or not", async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: "grapheme" }), async (text) => {
        const streamed = await eventsOf(ask(text));
        const plain = await eventsOf(ask(text), { stream: false });
        expect(written(plain)).toBe(written(streamed));
        expect(await answerTo(ask(text))).toBe(written(streamed));
      }),
    );
  });

  it("yields a plain answer in one batch after the request", async () => {
    expect(await batchesOf(ask("hello"), { stream: false })).toHaveLength(2);
  });

  it.each([
    ["is mentioned", ask("What is the weather in Paris today?", { tools: [weather] })],
    ["is required", ask("I live in Paris", { tools: [weather], toolChoice: "required" })],
    ["is named", ask("I live in Paris", { tools: [weather], toolChoice: { name: "get_weather" } })],
  ])("calls a tool that %s", async (_how, request) => {
    const events = await eventsOf(request);
    expect(events).toContainEqual({
      type: "tool-call-started",
      index: 0,
      id: "call_sim_1",
      name: "get_weather",
    });
    expect(JSON.parse(written(events))).toEqual({ city: "Paris", unit: "celsius" });
    expect(events.at(-1)).toEqual({ type: "finish", reason: "tool_calls" });
  });

  it.each([
    ["nobody asked for", ask("hello", { tools: [weather] })],
    ["is forbidden", ask("the weather?", { tools: [weather], toolChoice: "none" })],
  ])("calls no tool that %s", async (_how, request) => {
    expect(await answerTo(request)).toMatch(/^You said: /);
  });

  it("answers from a tool's result", async () => {
    const request: CompletionRequest = {
      tools: [weather],
      messages: [
        { role: "user", content: "the weather in Paris?" },
        {
          role: "assistant",
          content: null,
          tool_calls: [
            {
              id: "call_sim_1",
              type: "function",
              function: { name: "get_weather", arguments: "" },
            },
          ],
        },
        { role: "tool", tool_call_id: "call_sim_1", content: "18 degrees" },
      ],
    };
    expect(await answerTo(request)).toBe("The tool answered: 18 degrees");
  });

  it("fills a JSON Schema, including references, bounds and recursion", async () => {
    const schema = {
      type: "object",
      properties: {
        count: { type: "integer", minimum: 2, maximum: 9 },
        tags: { type: "array", items: { type: "string", maxLength: 3 }, minItems: 2 },
        when: { type: ["string", "null"], format: "date-time" },
        node: { $ref: "#/$defs/node" },
        either: { anyOf: [{ type: "null" }, { const: 7 }] },
      },
      required: ["count", "tags", "when", "node", "either"],
      $defs: { node: { type: "object", properties: { next: { $ref: "#/$defs/node" } } } },
    };
    const responseFormat = { type: "json_schema", name: "it", schema } as const;
    expect(JSON.parse(await answerTo(ask("give me 40 things", { responseFormat })))).toMatchObject({
      count: 9,
      tags: ["giv", "giv"],
      when: "2026-01-31T12:00:00Z",
      node: {},
      either: 7,
    });
  });

  it("answers with a JSON object if the request asks for one", async () => {
    const request = ask('say "hi"', { responseFormat: { type: "json_object" } });
    expect(JSON.parse(await answerTo(request))).toEqual({ echo: 'say "hi"' });
  });

  it("stops at a stop sequence and at the token limit", async () => {
    expect(await answerTo(ask("one two three", { stop: ["two"] }))).toBe("You said: one ");
    const events = await eventsOf(ask("one two three", { maxOutputTokens: 3 }));
    expect(written(events)).toBe("You said: one");
    expect(events.at(-1)).toEqual({ type: "finish", reason: "length" });
  });

  it("stops without a finish when it is aborted", async () => {
    const abort = new AbortController();
    const seen: CompletionEvent[] = [];
    for await (const batch of batches(ask("a b c d"), { signal: abort.signal })) {
      seen.push(...batch);
      if (batch.some((event) => event.type === "text-delta")) abort.abort();
    }
    expect(seen.at(-1)?.type).toBe("text-delta");
  });

  it("stops when aborted during a pause", async () => {
    const abort = new AbortController();
    const asked: Asked = { signal: abort.signal, options: { pace: 3_600_000 } };
    const types: string[] = [];
    for await (const batch of batches(ask("a"), asked)) {
      types.push(...batch.map((event) => event.type));
      queueMicrotask(() => abort.abort());
    }
    expect(types).toEqual(["request-sent"]);
  });

  it("knows only its listed models, with prices", async () => {
    expect(simProvider().models["tollgate/echo"]).toMatchObject({ input: "0.10", output: "0.40" });
    const refused = eventsOf(ask("hello"), { model: "tollgate/unheard-of" });
    await expect(refused).rejects.toThrow(ProviderError);
    await expect(refused).rejects.toMatchObject({ status: 404, delivery: "answered" });
  });

  it("reports problems in its configuration", () => {
    expect(simProvider().problems).toEqual([]);
    expect(simProvider({ pace: -1 }).problems).toEqual(["`pace` must be a whole number from 0."]);
  });
});

describe("embeddings of the built-in model", () => {
  async function embedded(request: EmbeddingRequest, model = "tollgate/echo") {
    const call = {
      ...{ model, upstreamName: model, request, credential: null, traceparent: null },
      signal: new AbortController().signal,
      limits: { eventBytes: 1_000_000, totalBytes: 1_000_000, bodyBytes: 4_194_304 },
      connectWithin: 10_000,
    };
    const events: CompletionEvent[] = [];
    for await (const batch of simProvider().embed?.(call) ?? []) events.push(...batch);
    const vectors = events.flatMap((event) =>
      event.type === "embedding" && typeof event.vector !== "string" ? [event.vector] : [],
    );
    return { events, vectors };
  }

  it("have length 1 and the wanted dimensions, and are equal for equal inputs", async () => {
    const { events, vectors } = await embedded({ inputs: ["a b", "c", "a b"], dimensions: 70 });
    const [first, second, third] = vectors;
    expect(first).toHaveLength(70);
    expect(Math.hypot(...(first ?? []))).toBeCloseTo(1);
    expect(third).toEqual(first);
    expect(second).not.toEqual(first);
    expect(events.at(-2)).toEqual({
      type: "usage",
      usage: { promptTokens: 5, completionTokens: 0 },
    });
    expect((await embedded({ inputs: [[1, 2]] })).vectors[0]).toHaveLength(8);
  });

  it("are missing from an unknown model", async () => {
    await expect(embedded({ inputs: ["a"] }, "tollgate/other")).rejects.toMatchObject({
      reason: "status_404",
    });
  });
});
