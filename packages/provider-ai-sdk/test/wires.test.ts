import { createAnthropic } from "@ai-sdk/anthropic";
import type { Provider } from "@tollgate/core/provider";
import type { Store } from "@tollgate/core/store";
import { anthropic } from "@tollgate/provider-anthropic";
import { openaiCompatible } from "@tollgate/provider-openai";
import { memoryStore } from "@tollgate/store-memory";
import { sqliteStore } from "@tollgate/store-sqlite";
import {
  createTestGateway,
  dumpStore,
  messagesUpstream,
  type StoreDump,
  scriptedUpstream,
} from "@tollgate/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { aiSdk } from "../src/index.ts";
import { type Answer, type Said, wires } from "./wires.ts";

const answers: readonly Answer[] = [
  { text: "I'll look. 🌍", calls: [{ id: "call_1", name: "look", input: { city: "Zürich" } }] },
  { text: "Sunny, é.", calls: [] },
  {
    text: null,
    calls: [
      { id: "call_2", name: "look", input: { city: "Oslo", days: [1, 2.5] } },
      { id: "call_3", name: "look", input: {} },
    ],
  },
  { text: "Rain.", calls: [] },
];

/** The messages of the user and the tools before each answer: two Turns of two Steps. */
const prompts: readonly (readonly Said[])[] = [
  [{ role: "user", text: "How is the weather?" }],
  [{ role: "result", id: "call_1", text: "sunny" }],
  [{ role: "user", text: 'And "there"?\n' }],
  [
    { role: "result", id: "call_2", text: "rain" },
    { role: "result", id: "call_3", text: "" },
  ],
];

const conversation: readonly Said[] = prompts.flatMap((said, at) => {
  const answer = answers[at];
  return answer === undefined ? said : [...said, { role: "answer" as const, answer }];
});

const models = {
  "acme/model": { input: 3, cachedInput: "0.3", output: 15, maxOutputTokens: 1_000 },
};
/** 60 tokens at 3 dollars per million, 40 cached at 0.3, and 20 out at 15, in nanodollars. */
const cost = 60 * 3_000 + 40 * 300 + 20 * 15_000;

async function messagesProvider(create: (baseURL: string) => Provider): Promise<Provider> {
  const usage = {
    input_tokens: 60,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 40,
    output_tokens: 20,
  };
  const upstream = await messagesUpstream((_, number) => {
    const { text, calls } = answers[number - 1] ?? { text: "Too many requests.", calls: [] };
    const said = text === null ? [] : [{ type: "text", text }];
    return { content: [...said, ...calls.map((call) => ({ type: "tool_use", ...call }))], usage };
  });
  onTestFinished(() => upstream.close());
  return create(upstream.url);
}

async function chatProvider(): Promise<Provider> {
  let number = 0;
  const upstream = await scriptedUpstream(({ body, send }) => {
    const { text, calls } = answers[number++] ?? { text: "Too many requests.", calls: [] };
    const stream: unknown = JSON.parse(body).stream;
    return send(chatAnswer(text, calls, stream === true));
  });
  onTestFinished(() => upstream.close());
  return openaiCompatible({ baseURL: `${upstream.url}/v1`, apiKey: "sk", vendor: "acme", models });
}

function chatAnswer(content: string | null, calls: Answer["calls"], stream: boolean): string {
  const tool_calls = calls.map(({ id, name, input }, index) => ({
    ...(stream ? { index } : {}),
    id,
    type: "function",
    function: { name, arguments: JSON.stringify(input) },
  }));
  const message = { role: "assistant", content, ...(calls.length > 0 ? { tool_calls } : {}) };
  const usage = {
    prompt_tokens: 100,
    prompt_tokens_details: { cached_tokens: 40, cache_write_tokens: 0 },
    completion_tokens: 20,
    total_tokens: 120,
  };
  const finish_reason = calls.length > 0 ? "tool_calls" : "stop";
  const whole = { id: "chatcmpl-1", model: "model" };
  const body = stream
    ? [
        { ...whole, choices: [{ index: 0, delta: message, finish_reason: null }] },
        { ...whole, choices: [{ index: 0, delta: {}, finish_reason }] },
        { ...whole, choices: [], usage },
      ]
        .map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`)
        .concat("data: [DONE]\n\n")
        .join("")
    : JSON.stringify({ ...whole, choices: [{ index: 0, message, finish_reason }], usage });
  const type = stream ? "text/event-stream" : "application/json";
  return `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

/** Every provider, over its own scripted upstream with the same answers. */
const providers: Readonly<Record<string, () => Promise<Provider>>> = {
  "provider-openai": chatProvider,
  "provider-anthropic": () =>
    messagesProvider((baseURL) => anthropic({ baseURL, apiKey: "sk", vendor: "acme", models })),
  "provider-ai-sdk": () =>
    messagesProvider((baseURL) =>
      aiSdk(({ fetch, credential }) => createAnthropic({ baseURL, apiKey: credential, fetch }), {
        apiKey: "sk",
        vendor: "acme",
        models,
      }),
    ),
};

/** Holds the conversation with a fresh gateway. Returns the client's answers and the records. */
async function hold(
  wire: keyof typeof wires,
  { provider, stream, store }: { provider: Provider; stream: boolean; store: Store },
) {
  const { gateway, key, clock } = await createTestGateway({ store, providers: { up: provider } });
  onTestFinished(() => gateway.close());
  const { path, bodyOf, read, join } = wires[wire];
  const said: Said[] = [];
  const got: Answer[] = [];
  for (const prompt of prompts) {
    said.push(...prompt);
    const response = await gateway.fetch(`http://in-process/v1/${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${key.secret}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "up/acme/model", stream, ...bodyOf(said) }),
    });
    const text = await response.text();
    if (response.status !== 200) throw new Error(text);
    const answer = read(stream ? join(text) : JSON.parse(text));
    got.push(answer);
    said.push({ role: "answer", answer });
  }
  const query = {
    organizations: [key.organizationId],
    at: clock.now(),
    activity: gateway.activity,
  };
  return { got, recorded: recordedIn(await dumpStore(store, query)) };
}

/** The records that must not depend on the wire or on the provider. */
function recordedIn({ steps, sessions, leaves }: StoreDump) {
  const oldest = steps.toSorted((one, other) => (one.id < other.id ? -1 : 1));
  const turns = [...new Set(oldest.map(({ turnId }) => turnId))];
  return {
    sessions: sessions.map(({ session, parts }) => ({
      length: session.length,
      head: session.head,
      messages: parts.flatMap(({ content }) =>
        content === null ? [] : JSON.parse(Buffer.from(content).toString()),
      ),
      parts: parts.map(({ kind, from, count }) => ({ kind, from, count })),
    })),
    steps: oldest.map((step) => ({
      turn: turns.indexOf(step.turnId),
      stepNumber: step.stepNumber,
      outcome: step.outcome,
      finishReason: step.finishReason,
      droppedFields: step.droppedFields,
      heads: [step.head, step.replyHead],
      attempts: step.attempts.map(({ end }) => ({
        usage: end?.usage,
        costNanoUsd: end?.costNanoUsd,
        bases: [end?.usageBasis, end?.costBasis, end?.priceSource],
        toolCalls: end?.toolCalls,
      })),
    })),
    leaves: leaves.length,
  };
}

const endpoints = ["chat_completions", "responses", "messages"] as const;
const pairs = endpoints.flatMap((wire) =>
  Object.entries(providers).map(([provider, open]) => ({
    wire,
    provider,
    open,
    store: "memoryStore",
    openStore: memoryStore,
  })),
);
const onSqlite = {
  wire: "messages" as const,
  provider: "provider-openai",
  open: chatProvider,
  store: "sqliteStore",
  openStore: () => sqliteStore({ filename: ":memory:" }),
};

describe("a conversation with tools", () => {
  it.each([...pairs, onSqlite])(
    "is recorded and priced alike from $wire to $provider, plain and streamed, on $store",
    async ({ wire, open, openStore }) => {
      const expected = await hold("chat_completions", {
        provider: await chatProvider(),
        stream: false,
        store: memoryStore(),
      });
      expect(expected.recorded).toMatchObject({
        sessions: [{ length: conversation.length }],
        steps: [
          { turn: 0, stepNumber: 0, attempts: [{ costNanoUsd: cost }] },
          { turn: 0, stepNumber: 1, attempts: [{ costNanoUsd: cost }] },
          { turn: 1, stepNumber: 0, attempts: [{ costNanoUsd: cost }] },
          { turn: 1, stepNumber: 1, attempts: [{ costNanoUsd: cost }] },
        ],
      });
      for (const stream of [false, true]) {
        const store = openStore();
        onTestFinished(() => store.close());
        const { got, recorded } = await hold(wire, { provider: await open(), stream, store });
        expect(got).toEqual(answers);
        expect(recorded).toEqual(expected.recorded);
      }
    },
  );
});
