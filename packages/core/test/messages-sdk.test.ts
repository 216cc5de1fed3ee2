import Anthropic from "@anthropic-ai/sdk";
import { createTestGateway, type ScriptedAnswer } from "@tollgate/testing";
import { expect, it } from "vitest";

const asked = { model: "test/tollgate/scripted", max_tokens: 256 };
const tools: Anthropic.Tool[] = [{ name: "look_up", input_schema: { type: "object" } }];

async function made() {
  const { gateway, key, provider } = await createTestGateway();
  const { fetch } = gateway;
  const baseURL = "http://in-process";
  const client = new Anthropic({ baseURL, apiKey: key.secret, fetch, maxRetries: 0 });
  return { client, gateway, key, provider };
}

it("Anthropic's SDK reads a stream as it reads a plain message", async () => {
  const { client, provider } = await made();
  const answer: ScriptedAnswer = {
    reasoning: ["Hm", "m."],
    state: { thinking_blocks: [{ type: "thinking", thinking: "Hmm.", signature: "signed" }] },
    text: ["It's ", "warm."],
    toolCalls: [{ id: "toolu_1", name: "look_up", arguments: ['{"city":', '"Paris"}'] }],
  };
  provider.reply(answer, { times: 2 });
  const messages: Anthropic.MessageParam[] = [{ role: "user", content: "How warm is Paris?" }];
  const plain = await client.messages.create({ ...asked, tools, messages });
  const streamed = await client.messages.stream({ ...asked, tools, messages }).finalMessage();
  const { content, stop_reason, usage } = plain;
  expect(streamed).toMatchObject({ content, stop_reason, usage });
  expect(content.map(({ type }) => type)).toEqual(["thinking", "text", "tool_use"]);
});

it("Anthropic's SDK runs a tool loop of three steps as one Turn", async () => {
  const { client, gateway, key, provider } = await made();
  for (const round of [1, 2])
    provider.reply({
      state: {
        thinking_blocks: [
          { type: "thinking", thinking: `${round}.`, signature: `signed ${round}` },
        ],
      },
      toolCalls: [{ id: `toolu_${round}`, name: "look_up", arguments: "{}" }],
    });
  provider.reply("18 degrees.");
  const messages: Anthropic.MessageParam[] = [{ role: "user", content: "How warm is Paris?" }];
  let last: Anthropic.Message | null = null;
  while (last === null || last.stop_reason === "tool_use") {
    last = await client.messages.stream({ ...asked, tools, messages }).finalMessage();
    const results = last.content.flatMap((block) =>
      block.type === "tool_use"
        ? [{ type: "tool_result" as const, tool_use_id: block.id, content: "18" }]
        : [],
    );
    messages.push({ role: "assistant", content: last.content });
    if (results.length > 0) messages.push({ role: "user", content: results });
  }
  const { organizationId } = key;
  const { data: steps } = await gateway.steps.list({ organizationId });
  expect(steps.map(({ stepNumber }) => stepNumber)).toEqual([2, 1, 0]);
  expect(new Set(steps.map(({ turnId }) => turnId)).size).toBe(1);
  expect(provider.calls.at(-1)?.request.messages.at(-2)).toMatchObject({
    state: { fields: { thinking_blocks: [{ thinking: "2.", signature: "signed 2" }] } },
  });
});

it.each([false, true])(
  "the tool runner of Anthropic's SDK goes on without a thread, stream: %s",
  async (stream) => {
    const { client, gateway, key, provider } = await made();
    for (const id of ["toolu_1", "toolu_2"])
      provider.reply({ toolCalls: [{ id, name: "look_up", arguments: "{}" }] });
    provider.reply("18 degrees.");
    const [look] = tools;
    const runner = client.beta.messages.toolRunner({
      ...asked,
      stream,
      tools: [{ ...look, name: "look_up", input_schema: { type: "object" }, run: () => "18" }],
      messages: [{ role: "user", content: "How warm is Paris?" }],
    });
    const { content } = await runner.runUntilDone();
    expect(content).toMatchObject([{ type: "text", text: "18 degrees." }]);
    const { data: steps } = await gateway.steps.list({ organizationId: key.organizationId });
    expect(steps.map(({ stepNumber }) => stepNumber)).toEqual([2, 1, 0]);
  },
);

it("Anthropic's SDK gets its own errors", async () => {
  const { client } = await made();
  const messages: Anthropic.MessageParam[] = [{ role: "user", content: "Hello" }];
  const wrong = client.messages.create({ ...asked, model: "nowhere/a/b", messages });
  await expect(wrong).rejects.toBeInstanceOf(Anthropic.NotFoundError);
  await expect(wrong).rejects.toMatchObject({
    type: "not_found_error",
    requestID: expect.stringMatching(/./),
  });
});
