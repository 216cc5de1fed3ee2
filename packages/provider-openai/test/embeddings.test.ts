import type { CompletionEvent, EmbeddingCall, EmbeddingRequest } from "@tollgate/core/provider";
import { scriptedUpstream } from "@tollgate/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { openaiCompatible } from "../src/index.ts";
import { callOf, said } from "./drive.ts";

/** The events and the error of one embeddings call, and the request that arrived. */
async function embedded(body: string, request: Partial<EmbeddingRequest> = {}, status = 200) {
  const head = `HTTP/1.1 ${status} Answer\r\ncontent-type: application/json`;
  const bytes = `${head}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
  const upstream = await scriptedUpstream(({ send }) => send(bytes));
  const provider = openaiCompatible({ baseURL: `${upstream.url}/v1`, apiKey: "sk-platform" });
  onTestFinished(async () => {
    await provider.close();
    await upstream.close();
  });
  const call: EmbeddingCall = { ...callOf(), request: { inputs: ["a", "b"], ...request } };
  const events: CompletionEvent[] = [];
  let thrown: unknown = null;
  try {
    for await (const batch of provider.embed?.(call) ?? []) events.push(...batch);
  } catch (error) {
    thrown = error;
  }
  const [sent] = upstream.requests;
  return { events: events.slice(1), thrown, head: sent?.head, body: sent?.body };
}

const list = (data: readonly unknown[], usage: unknown = { prompt_tokens: 4, total_tokens: 4 }) =>
  JSON.stringify({ object: "list", data, model: "text-embedding-3-small", usage });
const finish = { type: "finish", reason: "stop" };
const started = { type: "answer-started", providerModel: "text-embedding-3-small" };
const used = { type: "usage", usage: { promptTokens: 4, completionTokens: 0 } };

describe("the embeddings of an OpenAI-compatible API", () => {
  it("are asked for in base64, with only the fields of the request", async () => {
    const data = [
      { object: "embedding", index: 1, embedding: "AAAAPw==" },
      { object: "embedding", index: 0, embedding: "AACAPw==" },
    ];
    const request = { inputs: [[1, 2], [3]], dimensions: 1, user: "ada" };
    const { events, thrown, head, body } = await embedded(list(data), request);
    expect(thrown).toBeNull();
    expect(head).toMatch(/^POST \/v1\/embeddings HTTP\/1.1/);
    expect(head).toMatch(/^authorization: Bearer sk-platform$/im);
    expect(body).toBe(
      '{"model":"model","input":[[1,2],[3]],"encoding_format":"base64","dimensions":1,"user":"ada"}',
    );
    expect(events).toEqual([
      started,
      { type: "embedding", index: 1, vector: "AAAAPw==" },
      { type: "embedding", index: 0, vector: "AACAPw==" },
      used,
      finish,
    ]);
  });

  it("may come as numbers and without an index, as from upstreams that know no base64", async () => {
    const { events } = await embedded(list([{ embedding: [0.5] }, { embedding: [1] }]));
    expect(events).toEqual([
      started,
      { type: "embedding", index: 0, vector: [0.5] },
      { type: "embedding", index: 1, vector: [1] },
      used,
      finish,
    ]);
  });

  it.each([
    ["only a total", { total_tokens: 9 }, { promptTokens: 9, completionTokens: 0 }],
    [
      "a cost",
      { prompt_tokens: 3, cost: 0.25 },
      { promptTokens: 3, completionTokens: 0, costNanoUsd: 250_000_000 },
    ],
    ["nothing", null, null],
  ])("are metered by usage that reports %s", async (_name, usage, expected) => {
    const { events } = await embedded(list([{ embedding: [1] }], usage));
    const found = events.flatMap((event) => (event.type === "usage" ? event.usage : []));
    expect(found).toEqual(expected === null ? [] : [expected]);
  });

  it.each([
    ["no list", "{}", "invalid_answer"],
    ["an item without a vector", list([{ embedding: null }]), "invalid_answer"],
    ["a vector of texts", list([{ embedding: ["1"] }]), "invalid_answer"],
    ["text that is not JSON", "<html>", "invalid_json"],
    [
      "more numbers than can be parsed at once",
      list([{ embedding: Array(400_001).fill(0) }]),
      "too_many_values",
    ],
  ])("fail on %s", async (_name, body, reason) => {
    const { thrown } = await embedded(body);
    expect(said(thrown)).toMatchObject({ reason });
  });

  it("fail with the upstream's status and keep its text apart", async () => {
    const error = { message: "quotes the input", code: "invalid_value", param: "dimensions" };
    const { thrown } = await embedded(JSON.stringify({ error }), {}, 400);
    expect(said(thrown)).toEqual({ reason: "status_400", delivery: "answered", status: 400 });
    expect(thrown).toMatchObject({ param: "dimensions" });
    expect(String(thrown)).not.toContain("quotes");
  });
});
