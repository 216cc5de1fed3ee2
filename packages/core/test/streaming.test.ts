import { ProviderError } from "@tollgate/core/provider";
import { createTestGateway, type ScriptedAnswer } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { createPublishedSchemas } from "./published-schema.ts";
import { type Chunk, chunksOf, completionOf, failureOf, type Sent, streamed } from "./wire.ts";
import { written } from "./written.ts";

const problems = createPublishedSchemas();
const answers: readonly (readonly [string, ScriptedAnswer])[] = [
  ["text", { text: ["Gr", "üß", "e, 世", "界 🌍"] }],
  ["an empty answer", { text: [] }],
  ["reasoning before text", { reasoning: ["Let me", " see."], text: ["Yes", "."] }],
  ["a refusal", { refusal: ["I ", "cannot."], finishReason: "content_filter" }],
  ["an answer that hit its limit", { text: ["So"], finishReason: "length" }],
  [
    "parallel tool calls",
    {
      toolCalls: [
        { name: "get_weather", arguments: ['{"city":', '"Bern"}'] },
        { name: "get_time", arguments: "{}", id: "call_time" },
      ],
    },
  ],
  [
    "every detail of usage",
    {
      text: "x",
      usage: { promptTokens: 9, completionTokens: 4, cachedTokens: 0, reasoningTokens: 3 },
    },
  ],
];

/** The message that a client assembles from the chunks of a stream. */
function joined(chunks: readonly Chunk[]) {
  const deltas = chunks.flatMap(({ choices }) => choices.map(({ delta }) => delta));
  const text = (parts: readonly (string | null | undefined)[]) => {
    const said = parts.filter((part) => part).join("");
    return said === "" ? null : said;
  };
  const calls = new Map<number, { id: string; name: string; arguments: string }>();
  for (const call of deltas.flatMap((delta) => delta.tool_calls ?? [])) {
    const before = calls.get(call.index);
    calls.set(call.index, {
      id: before?.id ?? call.id ?? "",
      name: before?.name ?? call.function.name ?? "",
      arguments: (before?.arguments ?? "") + call.function.arguments,
    });
  }
  const reasons = chunks.flatMap(({ choices }) => choices.map((choice) => choice.finish_reason));
  const refusal = text(deltas.map((delta) => delta.refusal));
  return {
    // Clients join the empty content of the first chunk as well.
    content: text(deltas.map(({ content }) => content)) ?? (refusal || calls.size > 0 ? null : ""),
    refusal,
    reasoning: text(deltas.map((delta) => delta.reasoning_content)),
    calls: [...calls.values()],
    finishReasons: reasons.filter((reason) => reason !== null),
  };
}

function types(sent: readonly Sent[]): readonly string[] {
  return sent.map((event) => event.type);
}

describe("a streamed answer (sections 2.3 and 6.1)", () => {
  it.each(answers)("equals the plain one when joined: %s (W1)", async (_, answer) => {
    const { gateway, provider, chat } = await createTestGateway();
    provider.reply(answer, { times: 2 });
    const plain = await completionOf(gateway.fetch(chat()));
    const { message, finish_reason } = plain.choices[0];
    const stream = await streamed(
      gateway.fetch(chat({ stream: true, stream_options: { include_usage: true } })),
    );
    const chunks = chunksOf(stream);
    expect(joined(chunks)).toEqual({
      content: message.content,
      refusal: message.refusal,
      reasoning: message.reasoning_content ?? null,
      calls: (message.tool_calls ?? []).map((call) => ({ id: call.id, ...call.function })),
      finishReasons: [finish_reason],
    });
    expect(chunks.at(-1)?.usage).toEqual(plain.usage);
    expect(provider.calls.map(({ stream }) => stream)).toEqual([false, true]);
  });

  it.each(answers)("matches the published schema, like the plain one: %s", async (_, answer) => {
    const { gateway, provider, chat } = await createTestGateway();
    provider.reply(answer, { times: 2 });
    const plain = await completionOf(gateway.fetch(chat()));
    expect(problems("CreateChatCompletionResponse", plain)).toEqual([]);
    const asked = { stream: true, stream_options: { include_usage: true } };
    const chunks = chunksOf(await streamed(gateway.fetch(chat(asked))));
    for (const chunk of chunks)
      expect(problems("CreateChatCompletionStreamResponse", chunk)).toEqual([]);
  });

  it("lets other work run, even if the provider has it in memory and the client reads at once", async () => {
    const { gateway, provider, chat } = await createTestGateway();
    const events = 5_120;
    provider.reply({ text: Array<string>(events).fill("a") });
    const { body } = await gateway.answer(chat({ stream: true }));
    if (typeof body === "string") throw new Error("not a stream");
    let [pieces, turns, isOver] = [0, 0, false];
    const turn = (): void => {
      turns++;
      if (!isOver) setImmediate(turn);
    };
    setImmediate(turn);
    await new Promise<void>((end, fail) =>
      body.start({ write: () => Promise.resolve(void pieces++), end, fail }),
    );
    isOver = true;
    expect(pieces).toBeGreaterThan(events);
    expect(turns).toBeGreaterThan(events / 300);
  });

  it("is an event stream of chunks that ends with [DONE], once (W2)", async () => {
    const { gateway, provider, chat } = await createTestGateway();
    provider.reply({ text: ["a", "b"] });
    const answer = await gateway.fetch(chat({ stream: true }));
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      "content-type": "text/event-stream; charset=utf-8",
      // Neither caches nor proxies may hold events back.
      "cache-control": "no-cache",
      "x-accel-buffering": "no",
    });
    expect(answer.headers.get("x-service-policy-decision-id")).toMatch(/^[0-9a-f-]{36}$/);
    const text = await answer.text();
    expect(text.match(/^data: /gm)).toHaveLength(5);
    expect(text).toMatch(/^(data: \{.*\}\n\n){4}data: \[DONE\]\n\n$/);
    expect(text).not.toContain("event:");
  });

  it("carries the same ids and usage null on every chunk, and usage last if requested (W3)", async () => {
    const { gateway, provider, chat } = await createTestGateway();
    provider.reply({ text: ["a", "b"] }, { times: 2 });
    const asked = { stream: true, stream_options: { include_usage: true } };
    const withUsage = chunksOf(await streamed(gateway.fetch(chat(asked))));
    const without = chunksOf(await streamed(gateway.fetch(chat({ stream: true }))));
    for (const chunks of [withUsage, without]) {
      const common = chunks.map(({ id, created, model, session_id, turn_id }) =>
        JSON.stringify([id, created, model, session_id, turn_id]),
      );
      expect(new Set(common).size).toBe(1);
      expect(chunks[0]?.model).toBe("test/tollgate/scripted");
    }
    const [first, ...rest] = withUsage;
    expect(first?.choices[0]?.delta).toEqual({ role: "assistant", content: "", refusal: null });
    expect(withUsage.slice(0, -1).map(({ usage }) => usage)).toEqual([null, null, null, null]);
    expect(rest.at(-2)?.choices[0]?.finish_reason).toBe("stop");
    expect(rest.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: 15 } });
    expect(without.map(({ usage }) => usage)).toEqual([null, null, null, null]);
  });

  it("shows the recorded usage, whether or not the provider reports it (U4)", async () => {
    const { gateway, provider, key, chat } = await createTestGateway();
    provider.reply({ text: "a".repeat(30), usage: null });
    provider.reply({ text: "a".repeat(30), usage: { completionTokens: 7 } });
    provider.reply({ text: "a", usage: { promptTokens: 0, completionTokens: 0 } });
    const asked = { stream: true, stream_options: { include_usage: true } };
    const said = [];
    for (let call = 0; call < 3; call++)
      said.push(chunksOf(await streamed(gateway.fetch(chat(asked)))).at(-1)?.usage);
    const { data } = await gateway.steps.list({ organizationId: key.organizationId });
    const recorded = data.map((step) => ({
      prompt_tokens: step.promptTokens,
      completion_tokens: step.completionTokens,
      total_tokens: step.totalTokens,
    }));
    expect(said).toEqual(recorded.reverse());
    expect(said.map((usage) => usage?.completion_tokens)).toEqual([10, 7, 0]);
    expect(data.map(({ usageBasis }) => usageBasis)).toEqual([
      "reported",
      "estimated",
      "estimated",
    ]);
  });
});

describe("a stream that fails", () => {
  const down = new ProviderError("The provider broke off.", {
    reason: "reset",
    delivery: "unknown",
  });

  it("after its first byte ends with the error, then [DONE], without a finish reason", async () => {
    const { gateway, provider, key, chat } = await createTestGateway();
    provider.fail(down, { afterEvents: 3, answer: { text: ["Hel", "lo", "!"] } });
    const answer = await gateway.fetch(chat({ stream: true }));
    const sent = await streamed(answer);
    expect(answer.status).toBe(200);
    expect(types(sent)).toEqual(["chunk", "chunk", "chunk", "error", "done"]);
    expect(joined(chunksOf(sent))).toMatchObject({ content: "Hello", finishReasons: [] });
    expect(sent.at(-2)).toMatchObject({ error: { type: "server_error", code: "upstream_error" } });
    const { data } = await gateway.steps.list({ organizationId: key.organizationId });
    expect(data).toMatchObject([{ outcome: "failed", reason: "reset", usageBasis: "estimated" }]);
    const [session] = (await gateway.sessions.list({ organizationId: key.organizationId })).data;
    expect(session?.length).toBe(1);
  });

  it("without a finish reason is not a complete answer, even if it ends cleanly", async () => {
    for (const stream of [true, false]) {
      const { gateway, provider, key, chat } = await createTestGateway();
      provider.reply({ text: "cut", finishReason: null });
      const answer = await gateway.fetch(chat({ stream }));
      if (stream)
        expect(types(await streamed(answer))).toEqual(["chunk", "chunk", "error", "done"]);
      else expect([answer.status, (await failureOf(answer)).code]).toEqual([502, "upstream_error"]);
      const { data } = await gateway.steps.list({ organizationId: key.organizationId });
      expect(data).toMatchObject([{ outcome: "failed", reason: "cut" }]);
    }
  });

  it("before its first byte gives a plain error, never a stream", async () => {
    const { gateway, provider, chat } = await createTestGateway();
    provider.fail(down);
    provider.fail(down, { afterEvents: 1 });
    for (let call = 0; call < 2; call++) {
      const answer = await gateway.fetch(chat({ stream: true }));
      expect([answer.status, answer.headers.get("content-type")]).toEqual([
        502,
        "application/json",
      ]);
      expect(answer.headers.get("x-service-data-sensitivity")).toBe("D1_INTERNAL");
      expect(await failureOf(answer)).toMatchObject({ code: "upstream_error" });
    }
    expect(await written(gateway)).toMatchObject({ steps: 2 });
  });
});

describe("the headers of a stream", () => {
  it("wait for the first event, at most deadlines.headers; then pings keep the stream open", async () => {
    const { gateway, provider, clock, chat } = await createTestGateway();
    const hold = provider.hold();
    let hasHeaders = false;
    const answering = gateway.fetch(chat({ stream: true })).then((answer) => {
      hasHeaders = true;
      return answer;
    });
    await hold.reached();
    await clock.advance("14s");
    expect(hasHeaders).toBe(false);
    await clock.advance("1s");
    const answer = await answering;
    const reading = streamed(answer);
    await clock.advance("30s");
    hold.release();
    expect(types(await reading)).toEqual(["ping", "ping", "chunk", "chunk", "chunk", "done"]);
  });

  it("are sent with 200 after that, and a failure takes the stream's form", async () => {
    const { gateway, provider, clock, chat } = await createTestGateway();
    provider.reply({
      delay: "20s",
      failure: {
        error: new ProviderError("No.", { reason: "no", delivery: "answered", status: 400 }),
      },
    });
    const answering = gateway.fetch(chat({ stream: true }));
    await clock.advance("15s");
    const answer = await answering;
    const reading = streamed(answer);
    await clock.advance("5s");
    expect(answer.status).toBe(200);
    const sent = await reading;
    expect(types(sent)).toEqual(["error", "done"]);
    expect(sent[0]).toMatchObject({ error: { code: "upstream_rejected" } });
  });
});
