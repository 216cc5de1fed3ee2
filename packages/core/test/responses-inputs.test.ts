import { openaiCompatible } from "@tollgate/provider-openai";
import { createTestGateway, scriptedUpstream } from "@tollgate/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { responsesOf } from "./responses-calls.ts";
import { failureOf } from "./wire.ts";

const call = { type: "function_call", call_id: "call_1", name: "show", arguments: "{}" };
const question = { role: "user", content: "Show it." };
const url = "data:image/png;base64,iVBORw0KGgo=";
const output = (...parts: readonly object[]) => ({
  type: "function_call_output",
  call_id: "call_1",
  output: parts,
});
const lake = output(
  { type: "input_text", text: "A lake." },
  { type: "input_image", image_url: url },
);

describe("a list as a function's output", () => {
  async function start(options: { readonly toolOutputs?: "parts" } = {}) {
    const upstream = await scriptedUpstream(async ({ send, end }) => {
      const message = { role: "assistant", content: "Nice." };
      const body = JSON.stringify({ choices: [{ index: 0, message, finish_reason: "stop" }] });
      await send("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n");
      await send(body);
      end();
    });
    const provider = openaiCompatible({ baseURL: `${upstream.url}/v1`, apiKey: null });
    const { gateway, key } = await createTestGateway({
      providers: { upstream: provider },
      ...options,
    });
    onTestFinished(async () => {
      await gateway.close();
      await upstream.close();
    });
    const say = (...input: readonly object[]) =>
      responsesOf(gateway, key.secret).post({ model: "upstream/acme/m-1", input });
    const sent = () => upstream.requests.map(({ body }) => JSON.parse(body).messages);
    return { say, sent };
  }

  it('is sent upstream as a tool message with its images after it, with toolOutputs: "parts"', async () => {
    const { say, sent } = await start({ toolOutputs: "parts" });
    expect((await say(question, call, lake)).status).toBe(200);
    expect(sent()).toMatchObject([
      [
        question,
        { role: "assistant", tool_calls: [{ id: "call_1" }] },
        { role: "tool", tool_call_id: "call_1", content: [{ type: "text", text: "A lake." }] },
        { role: "user", content: [{ type: "image_url", image_url: { url } }] },
      ],
    ]);
  });

  it("is refused by default, naming the option, before anything is sent", async () => {
    const { say, sent } = await start();
    const refused = await say(question, call, lake);
    expect(refused.status).toBe(400);
    expect(await refused.json()).toMatchObject({
      error: {
        code: "invalid_value",
        param: "input[2].output",
        message: expect.stringContaining('toolOutputs: "parts"'),
      },
    });
    expect(sent()).toEqual([]);
  });
});

describe("reasoning items in the input", () => {
  const thought = (text: string) => ({
    type: "reasoning",
    summary: [{ type: "summary_text", text }],
  });
  const sealed = { type: "reasoning", summary: [], encrypted_content: "opaque" };
  const answer = { role: "assistant", content: "Here." };

  /** The fields that the Step records as dropped from such an input. */
  async function droppedFrom(...input: readonly object[]) {
    const { gateway, key } = await createTestGateway();
    onTestFinished(() => gateway.close());
    await responsesOf(gateway, key.secret).create({ input });
    const { data } = await gateway.steps.list({ organizationId: key.organizationId });
    return data[0]?.droppedFields;
  }

  it("are counted as dropped if no answer follows them", async () => {
    expect(await droppedFrom(question, thought("a"), thought("b"))).toEqual({ reasoning: 2 });
    expect(await droppedFrom(thought("a"), question, answer, question)).toEqual({ reasoning: 1 });
    expect(await droppedFrom(question, answer, thought("a"), question)).toEqual({ reasoning: 1 });
  });

  it("are not counted if they belong to an answer, or are empty", async () => {
    const answered = await droppedFrom(question, thought("a"), answer, question);
    expect(answered).not.toHaveProperty("reasoning");
    expect(await droppedFrom(question, { type: "reasoning", summary: [] })).toEqual({});
  });

  it("are counted if they come after no answer, even without text", async () => {
    expect(await droppedFrom(question, sealed)).toEqual({ reasoning: 1 });
  });
});

describe("the description of a namespace", () => {
  const group = (name: string, functions: number, description: string) => ({
    type: "namespace",
    name,
    description,
    tools: Array.from({ length: functions }, (_, at) => ({ type: "function", name: `f${at}` })),
  });

  async function send(...tools: readonly object[]) {
    const limits = { bodyBytes: 20_000, imageBodyBytes: 20_000 };
    const { gateway, key, provider } = await createTestGateway({ limits });
    onTestFinished(() => gateway.close());
    const answer = await responsesOf(gateway, key.secret).post({ tools });
    return { answer, sent: provider.calls.map(({ request }) => JSON.stringify(request).length) };
  }

  it("is refused if it would make the request much larger, before anything is sent", async () => {
    const long = "x".repeat(1_000);
    const refusals = [
      { tools: [group("a", 128, long)], param: "tools[0].description" },
      { tools: [group("a", 10, long), group("b", 11, long)], param: "tools[1].description" },
    ];
    for (const { tools, param } of refusals) {
      const { answer, sent } = await send(...tools);
      expect(await failureOf(answer)).toMatchObject({ code: "invalid_value", param });
      expect(sent).toEqual([]);
    }
  });

  it("is sent with each function if all copies together are at most as large as a body", async () => {
    const { answer, sent } = await send(
      group("a", 20, "x".repeat(999)),
      group("b", 1, "x".repeat(20)),
      group("c", 9, ""),
    );
    expect(answer.status).toBe(200);
    expect(sent).toEqual([expect.closeTo(20_000, -4)]);
  });
});
