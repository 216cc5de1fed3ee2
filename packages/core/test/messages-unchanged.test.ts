import { anthropic } from "@tollgate/provider-anthropic";
import { createTestGateway, messagesUpstream, type ScriptedMessage } from "@tollgate/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { joined, messagesOf } from "./messages-calls.ts";

const thinking = { type: "thinking", thinking: "The user wants é and 🌍.", signature: "c2lnbmVk" };
const answers: readonly ScriptedMessage[] = [
  {
    content: [
      thinking,
      { type: "redacted_thinking", data: "ZW5jcnlwdGVk" },
      { type: "text", text: "I'll look." },
      { type: "tool_use", id: "toolu_1", name: "read", input: { path: "a b", lines: [1, 2.5] } },
      { type: "tool_use", id: "toolu_2", name: "read", input: {} },
    ],
    usage: {
      input_tokens: 10,
      cache_creation_input_tokens: 300,
      cache_creation: { ephemeral_5m_input_tokens: 100, ephemeral_1h_input_tokens: 200 },
      cache_read_input_tokens: 1_000,
      output_tokens: 50,
      output_tokens_details: { thinking_tokens: 40 },
      service_tier: "standard",
    },
  },
  {
    content: [{ type: "text", text: "Done." }],
    stop_reason: "stop_sequence",
    stop_sequence: "END",
  },
];

const breakpoint = { cache_control: { type: "ephemeral", ttl: "1h" } };
const image = { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" };
/** Everything that a client sends, except the model. */
const sent = {
  max_tokens: 8_000,
  system: [
    { type: "text", text: "You are an agent." },
    { type: "text", text: "Today is a day.", ...breakpoint },
  ],
  tools: [
    {
      name: "read",
      description: "Reads a file",
      input_schema: { type: "object", properties: { path: { type: "string" } } },
      ...breakpoint,
    },
  ],
  tool_choice: { type: "auto", disable_parallel_tool_use: true },
  thinking: { type: "enabled", budget_tokens: 2_000 },
  top_k: 5,
  stop_sequences: ["END"],
  metadata: { user_id: "user-1" },
  service_tier: "standard_only",
};
const first = [
  {
    role: "user",
    content: [
      { type: "text", text: "Look at é 🌍" },
      { type: "image", source: image },
      { type: "image", source: { type: "url", url: "https://a.example/b.png" }, ...breakpoint },
    ],
  },
];
const results = {
  role: "user",
  content: [
    {
      type: "tool_result",
      tool_use_id: "toolu_1",
      content: [
        { type: "text", text: "1" },
        { type: "image", source: image },
      ],
      ...breakpoint,
    },
    { type: "tool_result", tool_use_id: "toolu_2", content: "No such file", is_error: true },
    { type: "text", text: "A reminder" },
  ],
};

async function start() {
  const upstream = await messagesUpstream((_, number) => answers[number - 1] ?? { content: [] });
  onTestFinished(() => upstream.close());
  const provider = anthropic({
    baseURL: upstream.url,
    apiKey: "sk-upstream",
    models: {
      "anthropic/claude": {
        input: 3,
        cachedInput: "0.30",
        cacheWrite: { "5m": "3.75", "1h": 6 },
        output: 15,
        maxOutputTokens: 64_000,
      },
    },
  });
  const { gateway, key } = await createTestGateway({ providers: { a: provider } });
  onTestFinished(() => gateway.close());
  return { upstream, gateway, key, calls: messagesOf(gateway, key.secret) };
}

/** The members of the upstream's request as JSON texts, which are equal if every byte is. */
function texts(body: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(body).map(([name, value]) => [name, JSON.stringify(value)]),
  );
}

describe("a conversation from the Messages API to Anthropic", () => {
  it("asks for thinking only if the client does: an effort alone doesn't", async () => {
    const { upstream, calls } = await start();
    const asked = {
      output_config: { effort: "low" },
      tool_choice: { type: "any" },
      temperature: 0,
    };
    const { thinking: _, ...plain } = sent;
    await calls.create({ ...plain, ...asked, model: "a/anthropic/claude", messages: first });
    const body = upstream.requests[0]?.body;
    expect(body).toMatchObject(asked);
    expect(body).not.toHaveProperty("thinking");
  });

  it("asks for updates on the thinking if the client does", async () => {
    const { upstream, calls } = await start();
    const thinking = { type: "adaptive", display: "updates" };
    await calls.create({ ...sent, thinking, model: "a/anthropic/claude", messages: first });
    expect(upstream.requests[0]?.body["thinking"]).toEqual(thinking);
  });

  it.each([true, false])("arrives byte for byte, with stream %s", async (stream) => {
    const { upstream, gateway, key, calls } = await start();
    const model = "a/anthropic/claude";
    const ask = async (messages: readonly object[]) => {
      const fields = { ...sent, model, messages };
      return stream ? joined(await calls.stream(fields)) : calls.create(fields);
    };
    const said = await ask(first);
    const expected = { ...sent, model: "claude", ...(stream ? { stream } : {}) };
    expect(texts(upstream.requests[0]?.body ?? {})).toEqual(
      texts({ ...expected, messages: first }),
    );

    // The client returns what it got, with the provider's own texts sealed.
    const content = said.content.map((block) =>
      block.type === "text" ? { type: "text", text: block.text } : block,
    );
    expect(JSON.stringify(content)).not.toContain(JSON.stringify(thinking.signature));
    const last = await ask([...first, { role: "assistant", content }, results]);
    const [answered] = answers;
    const back = answered && "content" in answered ? answered.content : [];
    expect(texts(upstream.requests[1]?.body ?? {})).toEqual(
      texts({ ...expected, messages: [...first, { role: "assistant", content: back }, results] }),
    );

    expect(said).toMatchObject({ stop_reason: "tool_use", usage: { input_tokens: 10 } });
    expect(last).toMatchObject({ stop_reason: "stop_sequence", stop_sequence: "END" });
    const { data } = await gateway.steps.list({ organizationId: key.organizationId });
    // 10 x 3,000 + 1,000 x 300 + 100 x 3,750 + 200 x 6,000 + 50 x 15,000, and 10 x 3,000 + 5 x 15,000
    expect(data.map(({ costNanoUsd }) => costNanoUsd).sort()).toEqual([105_000, 2_655_000]);
    expect(new Set(data.map(({ turnId }) => turnId)).size).toBe(1);
  });
});
