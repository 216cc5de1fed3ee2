import { createOpenResponses } from "@ai-sdk/open-responses";
import { createOpenAI } from "@ai-sdk/openai";
import { HumanMessage } from "@langchain/core/messages";
import { ChatOpenAI } from "@langchain/openai";
import { Agent, OpenAIResponsesModel, Runner, setTracingDisabled, tool } from "@openai/agents";
import {
  tool as aiTool,
  generateText,
  jsonSchema,
  type LanguageModel,
  type ModelMessage,
  stepCountIs,
  streamText,
} from "ai";
import OpenAI from "openai";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { citySchema } from "./client.ts";
import { model } from "./gateway-options.ts";
import { runGateway } from "./run-gateway.ts";
import { serveInMemory, serveInProcess } from "./served-gateway.ts";
import { scripted } from "./upstream.ts";

const question = "What is the weather in Paris?";

/** A fetch that records the bodies it sends. */
function watchedFetch() {
  const sent: string[] = [];
  const watched: typeof fetch = (url, init) => {
    sent.push(String(init?.body));
    return fetch(url, init);
  };
  return { sent, fetch: watched };
}

describe.each([
  ["memoryStore", serveInMemory],
  ["sqliteStore", serveInProcess],
] as const)("a second Turn after a streamed tool loop, on %s", (_, start) => {
  const running = runGateway(start);

  const keyOf = (user: string) => running.gateway.createKey({ user, label: "laptop" });

  /** The upstream saw the whole conversation, and it is one Session of two Turns. */
  async function expectOneConversation(user: string) {
    expect(running.upstream.bodies().at(-1)).toMatchObject({
      messages: [
        { role: "user", content: question },
        { role: "assistant", tool_calls: [{ id: "call_paris" }] },
        {
          role: "tool",
          tool_call_id: "call_paris",
          content: expect.stringContaining("18 degrees"),
        },
        { role: "assistant", content: scripted.weather },
        { role: "user", content: "Say hello" },
      ],
    });
    const rows = (await running.gateway.activity(user)).toReversed();
    expect(new Set(rows.map(({ sessionId }) => sessionId)).size).toBe(1);
    expect(rows.map(({ stepNumber, turnId }) => [stepNumber, turnId === rows[0]?.turnId])).toEqual([
      [0, true],
      [1, true],
      [0, false],
    ]);
  }

  async function aiSdkConversation(language: LanguageModel): Promise<void> {
    const weather = aiTool({
      inputSchema: jsonSchema<{ readonly city: string }>({ ...citySchema, type: "object" }),
      execute: async () => "18 degrees",
    });
    const messages: ModelMessage[] = [{ role: "user", content: question }];
    const loop = streamText({
      model: language,
      messages,
      tools: { get_weather: weather },
      stopWhen: stepCountIs(3),
      maxRetries: 0,
    });
    expect(await loop.text).toBe(scripted.weather);
    messages.push(...(await loop.responseMessages), { role: "user", content: "Say hello" });
    const next = await generateText({ model: language, messages, maxRetries: 0 });
    expect(next.text).toBe(scripted.hello);
  }

  it("with the AI SDK's default, which refers to items by id", async () => {
    const { sent, fetch } = watchedFetch();
    const openai = createOpenAI({
      baseURL: running.gateway.baseURL,
      apiKey: await keyOf("ai"),
      fetch,
    });
    await aiSdkConversation(openai(model));
    expect(sent.map((body) => body.includes('"item_reference"'))).toEqual([false, false, true]);
    await expectOneConversation("ai");
  });

  it("with the AI SDK's Open Responses, which sends items back", async () => {
    const apiKey = await keyOf("open-responses");
    const url = `${running.gateway.baseURL}/responses`;
    const { sent, fetch } = watchedFetch();
    await aiSdkConversation(createOpenResponses({ name: "tollgate", url, apiKey, fetch })(model));
    expect(sent.map((body) => body.includes('"item_reference"'))).toEqual([false, false, false]);
    await expectOneConversation("open-responses");
  });

  it.each(["by items", "by id"])("with OpenAI Agents, %s", async (way) => {
    setTracingDisabled(true);
    const user = `agents ${way}`;
    const openai = new OpenAI({
      baseURL: running.gateway.baseURL,
      apiKey: await keyOf(user),
      maxRetries: 0,
    });
    const weather = tool({
      name: "get_weather",
      description: "The weather of a city",
      parameters: z.object({ city: z.string() }),
      execute: async () => "18 degrees",
    });
    const agent = new Agent({
      name: "Assistant",
      model: new OpenAIResponsesModel(openai, model),
      tools: [weather],
    });
    const runner = new Runner({ tracingDisabled: true });
    const first = await runner.run(agent, question, { stream: true });
    let text = "";
    for await (const delta of first.toTextStream()) text += delta;
    await first.completed;
    expect([text, first.finalOutput]).toEqual([scripted.weather, scripted.weather]);
    const second =
      way === "by id" && first.lastResponseId !== undefined
        ? await runner.run(agent, "Say hello", { previousResponseId: first.lastResponseId })
        : await runner.run(agent, [...first.history, { role: "user", content: "Say hello" }]);
    expect(second.finalOutput).toBe(scripted.hello);
    await expectOneConversation(user);
  });

  it.each([false, true])("with LangChain, zero data retention: %s", async (zdrEnabled) => {
    const user = `langchain ${zdrEnabled}`;
    const chat = new ChatOpenAI({
      model,
      apiKey: await keyOf(user),
      maxRetries: 0,
      useResponsesApi: true,
      zdrEnabled,
      configuration: { baseURL: running.gateway.baseURL },
    });
    const weather = {
      type: "function",
      function: { name: "get_weather", parameters: citySchema },
    };
    const bound = chat.bindTools([weather]);
    const whole = async (messages: Parameters<typeof bound.stream>[0]) => {
      let message: Awaited<ReturnType<typeof bound.stream>> extends AsyncIterable<infer Chunk>
        ? Chunk | undefined
        : never;
      for await (const chunk of await bound.stream(messages))
        message = message === undefined ? chunk : message.concat(chunk);
      return message ?? expect.unreachable("nothing was streamed");
    };
    const asked = await whole([new HumanMessage(question)]);
    expect(asked.tool_calls).toMatchObject([{ id: "call_paris", args: { city: "Paris" } }]);
    const history = [
      new HumanMessage(question),
      asked,
      { role: "tool", tool_call_id: "call_paris", content: "18 degrees" },
    ];
    const answered = await whole(history);
    expect(answered.text).toBe(scripted.weather);
    const hello = await bound.invoke([...history, answered, new HumanMessage("Say hello")]);
    expect(hello.text).toBe(scripted.hello);
    await expectOneConversation(user);
  });
});
