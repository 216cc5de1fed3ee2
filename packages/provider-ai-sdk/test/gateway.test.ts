import { createGateway, type GatewayOptions } from "@tollgate/core";
import { memoryStore } from "@tollgate/store-memory";
import { countingIds, manualClock } from "@tollgate/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { aiSdk } from "../src/index.ts";
import { answer, startUpstream } from "./drive.ts";
import { anthropic } from "./native/anthropic.ts";
import { said } from "./native/vendor.ts";

const { text, toolCall, error } = anthropic.fixtures;
const bytesOf = (native: typeof error): Buffer =>
  answer(native.contentType, native.body, native.status);

/** A gateway with one upstream for Anthropic's protocol, which answers each request with the next item of the script. */
async function overAnthropic(
  script: readonly (typeof error)[],
  options: Pick<GatewayOptions, "toolOutputs"> = {},
) {
  const upstream = await startUpstream(({ send }, number) => {
    const next = script[number - 1];
    if (next) return send(bytesOf(next));
  });
  const gateway = createGateway({
    ...options,
    store: memoryStore(),
    clock: manualClock(),
    ids: countingIds(),
    providers: {
      anthropic: aiSdk(anthropic.connect(upstream.url), {
        apiKey: "sk-platform",
        vendor: "anthropic",
        models: { "anthropic/claude-test": { input: 3, output: 15, cachedInput: "0.3" } },
      }),
    },
  });
  onTestFinished(() => gateway.close());
  const { secret } = await gateway.keys.create({
    organizationId: "acme",
    userId: "ada",
    label: "laptop",
  });
  const post = (path: string, fields: object): Promise<Response> =>
    gateway.fetch(`http://in-process${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "anthropic/anthropic/claude-test", ...fields }),
    });
  return { gateway, upstream, post };
}

const messages = [{ role: "user", content: "Say it." }];
/** 8 tokens at 3 dollars per million, 4 cached at 0.3, and 5 out at 15: in nanodollars. */
const cost = 8 * 3_000 + 4 * 300 + 5 * 15_000;

describe("a gateway over an AI SDK provider", () => {
  it("answers Chat Completions, plain and streamed, and records the usage", async () => {
    const { gateway, upstream, post } = await overAnthropic([text.plain, text.stream]);
    const plain = await post("/v1/chat/completions", { messages });
    expect(await plain.json()).toMatchObject({
      choices: [{ message: { content: said.join("") }, finish_reason: "stop" }],
      usage: {
        prompt_tokens: 12,
        completion_tokens: 5,
        total_tokens: 17,
        prompt_tokens_details: { cached_tokens: 4 },
      },
    });
    const streamed = await post("/v1/chat/completions", { messages, stream: true });
    expect(await streamed.text()).toMatch(/data: \[DONE\]\n\n$/);
    const { data } = await gateway.activity.list({ organizationId: "acme" });
    const { host } = new URL(upstream.url);
    expect(data).toMatchObject([
      { host, provider: "anthropic", costNanoUsd: cost, usageBasis: "reported" },
      { host, provider: "anthropic", costNanoUsd: cost, usageBasis: "reported" },
    ]);
  });

  it("answers Responses, plain and streamed, and continues a stored one", async () => {
    const { upstream, post } = await overAnthropic([text.plain, text.stream]);
    const first: unknown = await (await post("/v1/responses", { input: "Say it." })).json();
    expect(first).toMatchObject({
      status: "completed",
      output: [{ content: [{ type: "output_text", text: said.join("") }] }],
    });
    const previous_response_id = Object(first).id;
    const next = await post("/v1/responses", {
      input: "Again.",
      previous_response_id,
      stream: true,
    });
    expect(await next.text()).toContain("event: response.completed");
    expect(JSON.parse(upstream.requests[1]?.body ?? "")).toMatchObject({
      messages: [
        { role: "user", content: [{ text: "Say it." }] },
        { role: "assistant", content: [{ text: said.join("") }] },
        { role: "user", content: [{ text: "Again." }] },
      ],
    });
  });

  it("loops over a tool as one Turn", async () => {
    const { gateway, upstream, post } = await overAnthropic([toolCall.plain, text.plain]);
    const tools = [{ type: "function", function: { name: "get_weather" } }];
    const called = await (await post("/v1/chat/completions", { messages, tools })).json();
    const reply = Object(called).choices[0].message;
    expect(reply.tool_calls).toMatchObject([
      { function: { name: "get_weather", arguments: '{"city":"Zürich"}' } },
    ]);
    const result = { role: "tool", tool_call_id: reply.tool_calls[0].id, content: "sunny" };
    const loop = { messages: [...messages, reply, result], tools };
    expect((await post("/v1/chat/completions", loop)).status).toBe(200);
    expect(JSON.parse(upstream.requests[1]?.body ?? "").messages).toMatchObject([
      { role: "user" },
      { role: "assistant", content: [{ type: "tool_use", input: { city: "Zürich" } }] },
      { role: "user", content: [{ type: "tool_result", content: "sunny" }] },
    ]);
    const { data } = await gateway.steps.list({ organizationId: "acme" });
    expect(new Set(data.map(({ turnId }) => turnId)).size).toBe(1);
  });

  it("sends a function's images after its result", async () => {
    const { upstream, post } = await overAnthropic([text.plain], { toolOutputs: "parts" });
    const input = [
      { role: "user", content: "Show it." },
      { type: "function_call", call_id: "call_1", name: "show", arguments: "{}" },
      {
        type: "function_call_output",
        call_id: "call_1",
        output: [
          { type: "input_text", text: "A lake." },
          { type: "input_image", image_url: "data:image/png;base64,iVBORw0KGgo=" },
        ],
      },
    ];
    expect((await post("/v1/responses", { input })).status).toBe(200);
    expect(JSON.parse(upstream.requests[0]?.body ?? "").messages).toMatchObject([
      { role: "user", content: [{ type: "text", text: "Show it." }] },
      { role: "assistant", content: [{ type: "tool_use", id: "call_1", name: "show" }] },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "call_1", content: "A lake." },
          { type: "image", source: { type: "base64", data: "iVBORw0KGgo=" } },
        ],
      },
    ]);
  });

  it("returns signed and hidden thinking from the client's copy or its own record", async () => {
    const thinking = [
      { type: "thinking", thinking: "I look it up.", signature: "signed" },
      { type: "redacted_thinking", data: "hidden" },
    ];
    const call = {
      type: "tool_use",
      id: "toolu_1",
      name: "get_weather",
      input: { city: "Zürich" },
    };
    const thought = {
      status: 200,
      contentType: "application/json",
      body: JSON.stringify({
        id: "msg_1",
        type: "message",
        role: "assistant",
        model: "claude-test",
        content: [...thinking, call],
        stop_reason: "tool_use",
        stop_sequence: null,
        usage: { input_tokens: 8, output_tokens: 5 },
      }),
    };
    for (const keeps of [true, false]) {
      const { upstream, post } = await overAnthropic([thought, text.plain]);
      const tools = [{ type: "function", function: { name: "get_weather" } }];
      const answered = await (await post("/v1/chat/completions", { messages, tools })).json();
      const { reasoning_details, ...reply } = Object(answered).choices[0].message;
      expect(JSON.stringify(reasoning_details)).toContain("tg1:");
      const result = { role: "tool", tool_call_id: "toolu_1", content: "sunny" };
      const kept = keeps ? { ...reply, reasoning_details } : reply;
      // Another question starts a new Session, which has no record.
      const asked = keeps ? [{ role: "user", content: "Say it again." }] : messages;
      const loop = { messages: [...asked, kept, result], tools };
      expect((await post("/v1/chat/completions", loop)).status).toBe(200);
      const [, assistant] = JSON.parse(upstream.requests[1]?.body ?? "").messages;
      expect(assistant.content).toMatchObject([...thinking, call]);
    }
  });

  it("sends the arguments of the history with all their digits", async () => {
    const { upstream, post } = await overAnthropic([text.plain]);
    const input = '{"id":12345678901234567890}';
    const called = {
      id: "toolu_1",
      type: "function",
      function: { name: "look", arguments: input },
    };
    const history = [
      ...messages,
      { role: "assistant", content: null, tool_calls: [called] },
      { role: "tool", tool_call_id: "toolu_1", content: "sunny" },
    ];
    expect((await post("/v1/chat/completions", { messages: history })).status).toBe(200);
    expect(upstream.requests[0]?.body).toContain(`"input":${input}`);
  });

  it("reports a request that the vendor rejects, and a parameter it does not support", async () => {
    const invalid = { type: "error", error: { type: "invalid_request_error", message: "sk-1" } };
    const { post } = await overAnthropic([
      { status: 400, contentType: "application/json", body: JSON.stringify(invalid) },
    ]);
    const refused = await post("/v1/chat/completions", { messages });
    expect(refused.status).toBe(400);
    expect(await refused.json()).toMatchObject({ error: { code: "upstream_rejected" } });
    const unsupported = await post("/v1/chat/completions", { messages, logit_bias: { "1": 1 } });
    expect(unsupported.status).toBe(400);
    expect(await unsupported.json()).toMatchObject({ error: { param: "logit_bias" } });
  });
});
