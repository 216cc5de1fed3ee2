import { virtual } from "@tollgate/core";
import { definePolicy, forbid, permit } from "@tollgate/core/policy";
import { type Provider, ProviderError } from "@tollgate/core/provider";
import { memoryStore } from "@tollgate/store-memory";
import {
  checkDump,
  checkQuiet,
  countingIds,
  createTestGateway,
  dumpStore,
  faultyStore,
  manualClock,
  type TestGateway,
  type TestGatewayOptions,
} from "@tollgate/testing";
import OpenAI from "openai";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { eventLog } from "./event-log.ts";
import { stores } from "./stores.ts";
import { failureOf } from "./wire.ts";
import { heldOn, written } from "./written.ts";

type Fields = Readonly<Record<string, unknown>>;

const model = "test/openai/embed";
/** 0.02 and 0.13 dollars per million tokens. */
const models = {
  "openai/embed": { input: "0.02", output: 0 },
  "openai/large": { input: "0.13", output: 0 },
};
const down = new ProviderError("Down.", { reason: "down", delivery: "answered", status: 503 });

const answered = z.object({
  data: z.array(z.object({ embedding: z.union([z.string(), z.array(z.number())]) })),
});

async function embeddingIn(answer: Response) {
  return answered.parse(await answer.json()).data[0]?.embedding;
}

async function started(options: TestGatewayOptions = {}) {
  const test = await createTestGateway({ models, ...options });
  const { fetch } = test.gateway;
  const { secret, organizationId } = test.key;
  const sdk = new OpenAI({ baseURL: "http://in-process/v1", apiKey: secret, fetch, maxRetries: 0 });
  const embed = (
    fields: Fields = {},
    headers: Readonly<Record<string, string>> = {},
    signal: AbortSignal | null = null,
  ) =>
    fetch("http://in-process/v1/embeddings", {
      method: "POST",
      signal,
      headers: {
        "content-type": "application/json",
        authorization: `Bearer ${secret}`,
        ...headers,
      },
      body: JSON.stringify({ model, input: "Hello", ...fields }),
    });
  const steps = async () => (await test.gateway.steps.list({ organizationId })).data;
  return { ...test, sdk, embed, steps, organizationId };
}

/** The problems that the checks of a whole store find. */
async function problems({ store, gateway, clock, key }: TestGateway): Promise<readonly string[]> {
  const query = { organizations: [key.organizationId], at: clock.now() };
  const dump = await dumpStore(store, { ...query, activity: gateway.activity });
  return [...checkDump(dump), ...checkQuiet(dump)];
}

describe.each(stores)("POST /v1/embeddings on %s", (_, open) => {
  it("answers OpenAI's SDK unchanged, which asks for base64 and decodes it", async () => {
    const { sdk, provider } = await started({ store: open() });
    provider.reply({
      embeddings: [[0.25, -1], "AAAAPwAAgL8="],
      usage: { promptTokens: 7, completionTokens: 0 },
    });
    const answer = await sdk.embeddings.create({
      model,
      input: ["a", "b"],
      dimensions: 2,
      user: "ada",
    });
    expect(answer).toEqual({
      object: "list",
      model,
      data: [
        { object: "embedding", index: 0, embedding: [0.25, -1] },
        { object: "embedding", index: 1, embedding: [0.5, -1] },
      ],
      usage: { prompt_tokens: 7, total_tokens: 7 },
    });
    const embedding = { inputs: ["a", "b"], dimensions: 2, user: "ada" };
    expect(provider.calls).toMatchObject([{ model: "openai/embed", embedding }]);
  });

  it("takes a text, texts, token ids and lists of token ids, and answers in the wanted format", async () => {
    const { embed, provider } = await started({ store: open() });
    const vector = async (fields: Fields) => {
      provider.reply(({ embedding }) => ({ embeddings: embedding?.inputs.map(() => [1]) ?? [] }));
      return embeddingIn(await embed(fields));
    };
    expect(await vector({ input: "a" })).toEqual([1]);
    expect(await vector({ input: ["a", "b"], encoding_format: "float" })).toEqual([1]);
    expect(await vector({ input: [1, 2], encoding_format: "base64" })).toBe("AACAPw==");
    expect(await vector({ input: [[1], [2, 3]] })).toEqual([1]);
    expect(provider.calls.map(({ embedding }) => embedding?.inputs)).toEqual([
      ["a"],
      ["a", "b"],
      [[1, 2]],
      [[1], [2, 3]],
    ]);
  });

  it("records a call without Session, Turn and step number, at the price of its input tokens", async () => {
    const test = await started({
      store: open(),
      budgets: [{ id: "b", limit: { usd: 1 }, period: "day" }],
    });
    const { gateway, provider, embed, steps, organizationId } = test;
    provider.reply({ usage: { promptTokens: 1_234, completionTokens: 0 } });
    const answer = await embed(
      { input: ["Hello", "you"] },
      { "x-service-data-sensitivity": "D2_CONFIDENTIAL" },
    );
    const [step] = await steps();
    // 1,234 tokens at 20 nanodollars.
    const figures = {
      promptTokens: 1_234,
      completionTokens: 0,
      totalTokens: 1_234,
      costNanoUsd: 24_680,
    };
    const place = {
      endpoint: "embeddings",
      sessionId: null,
      turnId: null,
      stepNumber: null,
      head: null,
    };
    expect(step).toMatchObject({
      ...figures,
      ...place,
      outcome: "completed",
      usageBasis: "reported",
      costBasis: "reported",
    });
    expect(step?.attempts).toMatchObject([
      { ...figures, outputCap: 0, host: "test.test", outcome: "completed" },
    ]);
    expect(step?.attempts[0]?.bodySha256).toMatch(/^[0-9a-f]{64}$/);
    expect(answer.headers.get("x-service-data-sensitivity")).toBe("D2_CONFIDENTIAL");
    expect(answer.headers.get("x-service-policy-decision-id")).toBe(step?.decisionId);
    const decision = await gateway.decisions.get({ organizationId, id: step?.decisionId ?? "" });
    expect(decision).toMatchObject({
      effect: "permit",
      // Two texts, at 3 bytes a token and 8 tokens each.
      facts: {
        embeddings: true,
        estimatedInputTokens: 2 + 1 + 16,
        estimatedOutputTokens: 0,
        estimatedCostNanoUsd: 380,
      },
    });
    expect((await gateway.activity.list({ organizationId })).data).toMatchObject([
      { id: step?.id, ...figures },
    ]);
    expect((await gateway.budgets.status({ id: "b" })).data).toMatchObject([
      { settled: 24_680, held: 0 },
    ]);
    const sums = await gateway.steps.summarize({ organizationId }, ["model"]);
    expect(sums).toMatchObject([{ model, steps: 1, costNanoUsd: 24_680 }]);
    expect(await written(gateway)).toEqual({ steps: 1, sessions: 0, decisions: 1 });
    const content = await gateway.steps.content({ organizationId, id: step?.id ?? "" });
    expect(content).toMatchObject({
      sessionId: null,
      input: null,
      answer: null,
      missing: { input: "none" },
    });
    expect(await problems(test)).toEqual([]);
  });

  it("holds its estimate until it is settled, and is refused once a Budget is exhausted", async () => {
    const budgets = [{ id: "b", limit: { tokens: 20 }, period: "day" as const }];
    const test = await started({ store: open(), budgets });
    const { gateway, provider, embed } = test;
    const hold = provider.hold();
    const first = embed({ input: [[1, 2, 3, 4, 5, 6]] });
    await hold.reached();
    expect(await heldOn(gateway, "b")).toBe(6);
    hold.release();
    expect((await first).status).toBe(200);
    expect(await heldOn(gateway, "b")).toBe(0);
    const refused = await embed({ input: Array.from({ length: 11 }, (_, id) => id) });
    expect(await failureOf(refused)).toMatchObject({
      code: "budget_exceeded",
      type: "insufficient_quota",
    });
    expect(provider.calls).toHaveLength(1);
    expect(await written(gateway)).toEqual({ steps: 1, sessions: 0, decisions: 2 });
    expect(await problems(test)).toEqual([]);
  });

  it("settles a provider's failure without charge and keeps none of its text", async () => {
    const budgets = [{ id: "b", limit: { usd: 1 }, period: "day" as const }];
    const test = await started({ store: open(), budgets, retries: { max: 0 } });
    const details = { reason: "status_400", delivery: "answered", status: 400 } as const;
    test.provider.fail(new ProviderError("Bad.", { ...details, upstreamError: "quotes: Hello" }));
    const failure = await test.embed();
    expect(failure.status).toBe(400);
    expect(await failure.text()).not.toContain("quotes");
    const [step] = await test.steps();
    expect(step).toMatchObject({
      outcome: "failed",
      reason: "status_400",
      totalTokens: 0,
      costNanoUsd: 0,
    });
    expect(step?.attempts[0]?.error).toEqual({ message: null, commitment: expect.any(String) });
    expect(await heldOn(test.gateway, "b")).toBe(0);
    expect(await problems(test)).toEqual([]);
  });

  it("answers a repeat of its Idempotency-Key once more without another call", async () => {
    const { embed, provider, steps } = await started({ store: open() });
    const key = { "idempotency-key": "doc-1" };
    const first = await embed({}, key);
    const again = await embed({}, key);
    expect(again.headers.get("idempotency-replayed")).toBe("true");
    expect(await again.text()).toBe(await first.text());
    expect(await failureOf(await embed({ input: "Other" }, key))).toMatchObject({
      code: "idempotency_mismatch",
    });
    expect(provider.calls).toHaveLength(1);
    expect(await steps()).toHaveLength(1);
  });

  it("keeps no answer above 1 MiB for repeats", async () => {
    const { embed, provider } = await started({ store: open() });
    const key = { "idempotency-key": "doc-1" };
    // 65,536 floats, four times, are 1,398,104 characters of base64.
    const vector = Buffer.alloc(262_144).toString("base64");
    provider.reply({ embeddings: Array<string>(4).fill(vector) });
    const fields = { input: ["a", "b", "c", "d"], encoding_format: "base64" };
    expect((await (await embed(fields, key)).text()).length).toBeGreaterThan(1_398_104);
    expect(await failureOf(await embed(fields, key))).toMatchObject({
      code: "idempotency_not_kept",
    });
    expect(provider.calls).toHaveLength(1);
  });

  it("is settled as interrupted after its process is lost, with its estimated input", async () => {
    const store = open();
    const budgets = [{ id: "b", limit: { tokens: 100 }, period: "day" as const }];
    const gone = await started({ store, budgets });
    const clock = manualClock();
    const peer = await createTestGateway({ store, clock, ids: countingIds(1), budgets, models });
    const hold = gone.provider.hold();
    const late = gone.embed({ input: [7, 8, 9] });
    await hold.reached();
    await clock.advance("20s");
    const [step] = (await peer.gateway.steps.list({ organizationId: gone.organizationId })).data;
    expect(step).toMatchObject({
      outcome: "interrupted",
      reason: "process_lost",
      promptTokens: 3,
      completionTokens: 0,
      costNanoUsd: 60,
    });
    expect((await peer.gateway.budgets.status({ id: "b" })).data).toMatchObject([
      { settled: 3, held: 0 },
    ]);
    hold.release();
    expect(await failureOf(await late)).toMatchObject({ code: "evidence_unavailable" });
  });
});

describe("POST /v1/embeddings", () => {
  it("can be permitted and forbidden by rules of its own, and models show what either permits", async () => {
    const rules = [permit("embeddings", { embeddings: true, model: "test/openai/embed" })];
    const test = await started({ policy: definePolicy({ rules }) });
    expect((await test.embed()).status).toBe(200);
    expect(await failureOf(await test.gateway.fetch(test.chat({ model })))).toMatchObject({
      code: "policy_denied",
    });
    const listed = await test.sdk.models.list();
    expect(listed.data.map(({ id }) => id)).toEqual([model]);
    const no = definePolicy({
      rules: [permit("all"), forbid("none", { embeddings: true }, { reason: "No." })],
    });
    const other = await started({ policy: no });
    expect(await failureOf(await other.embed())).toMatchObject({ code: "policy_denied" });
    expect((await other.gateway.fetch(other.chat({ model }))).status).toBe(200);
    expect(other.provider.calls).toHaveLength(1);
    expect(await written(other.gateway)).toEqual({ steps: 1, sessions: 1, decisions: 2 });
  });

  it.each<[string, Fields, string, string]>([
    ["no input", { input: undefined }, "missing_required_parameter", "input"],
    ["an empty text", { input: "" }, "invalid_value", "input"],
    ["an empty list", { input: [] }, "invalid_value", "input"],
    ["an empty text in a list", { input: ["a", ""] }, "invalid_value", "input[1]"],
    ["texts and token ids together", { input: ["a", 1] }, "invalid_type", "input[1]"],
    ["token ids and texts together", { input: [1, "a"] }, "invalid_type", "input[1]"],
    ["lists and texts together", { input: [[1], "a"] }, "invalid_type", "input[1]"],
    ["an empty list of token ids", { input: [[1], []] }, "invalid_value", "input[1]"],
    ["half a token id", { input: [[1], [2, 0.5]] }, "invalid_type", "input[1][1]"],
    ["a negative token id", { input: [-1] }, "invalid_value", "input[0]"],
    ["a number", { input: 5 }, "invalid_type", "input"],
    ["too many inputs", { input: Array(2_049).fill("a") }, "invalid_value", "input"],
    [
      "too many token ids",
      { input: Array(4).fill(Array(90_000).fill(1)) },
      "invalid_value",
      "input",
    ],
    ["too many token ids of one text", { input: Array(300_001).fill(1) }, "invalid_value", "input"],
    ["no dimension", { dimensions: 0 }, "invalid_value", "dimensions"],
    ["another format", { encoding_format: "int8" }, "invalid_value", "encoding_format"],
    [
      "a Session",
      { session_id: "5f0f5bb2-5d9b-4ed6-8a1a-2c0e6a6ad6ad" },
      "unknown_parameter",
      "session_id",
    ],
    ["a stream", { stream: true }, "unknown_parameter", "stream"],
    ["an unknown field", { input_type: "query" }, "unknown_parameter", "input_type"],
    ["an unknown model", { model: "nowhere/a/b" }, "model_not_found", "model"],
  ])("refuses %s with its path, and leaves nothing behind", async (_name, fields, code, param) => {
    const { embed, gateway, provider } = await started();
    expect(await failureOf(await embed(fields))).toMatchObject({ code, param });
    expect(provider.calls).toEqual([]);
    expect(await written(gateway)).toEqual({ steps: 0, sessions: 0, decisions: 0 });
  });

  it("takes as many token ids as OpenAI does", async () => {
    const { embed, provider } = await started();
    expect((await embed({ input: Array(4).fill(Array(75_000).fill(1)) })).status).toBe(200);
    expect(provider.calls[0]?.embedding?.inputs).toHaveLength(4);
  });

  it("refuses a model of a gateway without embeddings before anything is sent", async () => {
    const { provider } = await createTestGateway();
    const { embed: _, ...plain } = provider.at("plain");
    const without: Provider = plain;
    const { embed, gateway } = await started({ providers: { plain: without } });
    const failure = await failureOf(await embed({ model: "plain/openai/embed" }));
    expect(failure).toMatchObject({ code: "unsupported_value", param: "model" });
    expect(await written(gateway)).toEqual({ steps: 0, sessions: 0, decisions: 0 });
  });

  it("falls back to the same model of another gateway, and never to another model", async () => {
    const fallbacks = ["test/openai/large", "other/openai/embed"] as const;
    const policy = definePolicy({ rules: [permit("all", {}, { fallbacks })] });
    const { embed, provider, steps } = await started({ policy, retries: { max: 0 } });
    provider.fail(down);
    expect((await embed()).status).toBe(200);
    expect(provider.calls.map((call) => `${call.gateway}/${call.model}`)).toEqual([
      model,
      "other/openai/embed",
    ]);
    expect((await steps())[0]?.attempts).toHaveLength(2);
    provider.fail(down, { times: 2 });
    expect((await embed()).status).toBe(503);
    expect(provider.calls.slice(2).map(({ model: asked }) => asked)).toEqual([
      "openai/embed",
      "openai/embed",
    ]);
  });

  it("answers for a virtual model of one model at several gateways, and refuses one of several", async () => {
    const providers = {
      pool: virtual({
        same: { by: "order", targets: [model, "other/openai/embed"] },
        mixed: { by: "order", targets: [model, "test/openai/large"] },
      }),
    };
    const { embed, provider } = await started({
      providers,
      gateways: ["other"],
      retries: { max: 0 },
    });
    provider.fail(down);
    expect((await embed({ model: "pool/any/same" })).status).toBe(200);
    expect(provider.calls.map(({ gateway }) => gateway)).toEqual(["test", "other"]);
    const failure = await failureOf(await embed({ model: "pool/any/mixed" }));
    expect(failure).toMatchObject({ code: "unsupported_value", param: "model" });
    expect(provider.calls).toHaveLength(2);
  });

  it.each([
    ["lacks a vector", [[1]]],
    ["has a vector for no input", [[1], [2], [3]]],
    ["has an empty vector", [[1], []]],
    ["has a value that is not finite", [[1], [Number.NaN]]],
    ["has more values than a vector has", [[1], Array(65_537).fill(1)]],
    ["has more floats than a vector has", [[1], Buffer.alloc(4 * 65_537).toString("base64")]],
    ["has text that is not base64", ["AACAPw==", "…"]],
    ["has half a float", ["AACAPw==", "AAA="]],
    ["has a float that is not finite", ["AACAPw==", "AADAfw=="]],
  ])("fails an answer that %s, and charges the reported tokens", async (_name, embeddings) => {
    const { embed, provider, steps } = await started();
    provider.reply({ embeddings });
    expect((await embed({ input: ["a", "b"] })).status).toBe(502);
    expect(await steps()).toMatchObject([{ outcome: "failed", reason: "invalid_answer" }]);
    expect(provider.calls).toHaveLength(1);
  });

  it("fails an answer with two vectors for one input", async () => {
    const { provider } = await createTestGateway();
    const twice: Provider = {
      ...provider.at("twice"),
      async *embed() {
        const vectors = [0, 1, 1].map(
          (index) => ({ type: "embedding", index, vector: [1] }) as const,
        );
        yield [...vectors, { type: "finish", reason: "stop" }];
      },
    };
    const { embed } = await started({ providers: { twice } });
    const failed = await embed({ model: "twice/openai/embed", input: ["a", "b"] });
    expect(failed.status).toBe(502);
  });

  it("writes a long answer in pieces, with the same text as a short one", async () => {
    const { embed, provider } = await started();
    const vector = Buffer.alloc(65_536).toString("base64");
    provider.reply({ embeddings: Array(20).fill(vector) });
    const fields = { input: Array(20).fill("a"), encoding_format: "base64" };
    const sizes: number[] = [];
    const texts: Uint8Array[] = [];
    for await (const piece of (await embed(fields)).body ?? []) {
      sizes.push(piece.length);
      texts.push(piece);
    }
    expect(Math.max(...sizes)).toBeLessThan(200_000);
    const { data } = answered.parse(JSON.parse(Buffer.concat(texts).toString()));
    expect(data.map(({ embedding }) => embedding)).toEqual(Array(20).fill(vector));
  });

  it("takes room for its answer, and leaves nothing behind if there is none", async () => {
    const { embed, gateway, provider } = await started({ limits: { bytesInFlight: 100_000 } });
    const hold = provider.hold();
    const first = embed({ input: ["a", "b", "c", "d"] });
    await hold.reached();
    const failure = await failureOf(await embed({ input: ["a", "b", "c"] }));
    expect(failure).toMatchObject({ code: "overloaded" });
    const small = embed({ input: ["a", "b", "c"], dimensions: 256 });
    await hold.reached(2);
    hold.release();
    expect([(await first).status, (await small).status]).toEqual([200, 200]);
    expect(await written(gateway)).toEqual({ steps: 2, sessions: 0, decisions: 2 });
  });

  const longInput = { input: Array<string>(20).fill("a"), encoding_format: "base64" };
  const longAnswer = {
    embeddings: Array<string>(20).fill(Buffer.alloc(65_536).toString("base64")),
  };

  it.each([
    ["read to its end", (answer: Response) => answer.text()],
    ["cancelled", (answer: Response) => answer.body?.cancel()],
  ])("keeps the room of a long answer until it is %s", async (_name, finish) => {
    // Room for 20 vectors of 3,072 values, but not for 21.
    const { embed, provider } = await started({ limits: { bytesInFlightPerKey: 335_000 } });
    provider.reply(longAnswer);
    const answer = await embed(longInput);
    expect(await failureOf(await embed())).toMatchObject({ code: "overloaded" });
    await finish(answer);
    expect((await embed()).status).toBe(200);
  });

  it("frees the room of a long answer whose client left while it was settled", async () => {
    const on = { verb: "settleStep", nth: 1, when: "before", action: "wait" } as const;
    const { store, fault } = faultyStore(memoryStore(), { on });
    const limits = { bytesInFlightPerKey: 335_000 };
    const log = eventLog();
    const test = await started({ store, limits, observers: log.observers });
    test.provider.reply(longAnswer);
    const client = new AbortController();
    const asked = test.embed(longInput, { "idempotency-key": "doc-1" }, client.signal);
    await fault.reached();
    client.abort(new Error("gone"));
    await expect(asked).rejects.toThrow("gone");
    fault.release();
    await log.seeing("step.settled");
    expect((await test.embed()).status).toBe(200);
  });

  it("lets other work run between the pieces of a long answer, however fast they are taken", async () => {
    const { gateway, key, provider } = await started();
    provider.reply(longAnswer);
    const { body } = await gateway.answer(
      new Request("http://in-process/v1/embeddings", {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${key.secret}` },
        body: JSON.stringify({ model, ...longInput }),
      }),
    );
    if (typeof body === "string") throw new Error("the answer is short");
    let [pieces, turns, isOver] = [0, 0, false];
    const turn = (): void => {
      turns++;
      if (!isOver) setImmediate(turn);
    };
    setImmediate(turn);
    await new Promise<void>((resolve, reject) =>
      body.start({
        write: () => Promise.resolve(void pieces++),
        end: resolve,
        fail: reject,
      }),
    );
    isOver = true;
    expect(pieces).toBeGreaterThan(10);
    expect(turns).toBeGreaterThanOrEqual(pieces - 1);
  });

  it("fails an answer larger than an upstream's stream may be", async () => {
    const { embed, provider, steps } = await started({ limits: { upstreamBytes: 1_048_576 } });
    provider.reply({ embeddings: [Array(131_073).fill(1)] });
    expect((await embed()).status).toBe(502);
    expect(await steps()).toMatchObject([{ outcome: "failed", reason: "answer_too_large" }]);
  });

  it("tells observers of a Step without a Session", async () => {
    const log = eventLog();
    const { embed } = await started({ observers: log.observers });
    await embed();
    const opened = log.seen.find(({ type }) => type === "step.opened");
    expect(opened).toMatchObject({ endpoint: "embeddings", sessionId: null });
    expect(log.seen.find(({ type }) => type === "request.answered")).toMatchObject({
      endpoint: "createEmbeddings",
      status: 200,
    });
  });

  it("is found by name for routers of a host, and exported with empty columns for its place", async () => {
    const { gateway, key, organizationId } = await started();
    const answer = await gateway.handlers.createEmbeddings(
      new Request("http://host/anything", {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${key.secret}` },
        body: JSON.stringify({ model, input: "Hello" }),
      }),
    );
    expect(answer.status).toBe(200);
    const file = gateway.steps.export({ organizationId }, { format: "csv" });
    const text = await new Response(file).text();
    expect(text.split("\r\n")[1]).toContain(",embeddings,false,,,,");
  });
});
