import OpenAI from "openai";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { model } from "./gateway-options.ts";
import { runGateway } from "./run-gateway.ts";
import { serveInProcess } from "./served-gateway.ts";
import { scripted } from "./upstream.ts";

/** The fields that the gateway adds to the SDK's bodies (sections 2.2 and 2.3 of the specification). */
const extension = z.looseObject({ session_id: z.uuid(), turn_id: z.uuid() });

describe("the official SDK", () => {
  const running = runGateway(serveInProcess);

  async function clientOf(user: string): Promise<OpenAI> {
    const apiKey = await running.gateway.createKey({ user, label: "laptop" });
    return new OpenAI({ baseURL: running.gateway.baseURL, apiKey, maxRetries: 0 });
  }

  const hello = { role: "user" as const, content: "Say hello" };

  it("reads session_id, turn_id, id and usage, and the two headers", async () => {
    const { chat } = await clientOf("headers");
    const call = chat.completions.create({ model, messages: [hello] });
    const { data, response } = await call.withResponse();
    expect(extension.safeParse(data).error).toBeUndefined();
    expect(response.headers.get("x-service-data-sensitivity")).toBe("D1_INTERNAL");
    expect(response.headers.get("x-service-policy-decision-id")).toBeTruthy();
  });

  it("reads them on every chunk, usage null until the last, which has no choices", async () => {
    const { chat } = await clientOf("chunks");
    const stream = await chat.completions.create({
      model,
      messages: [hello],
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks: OpenAI.ChatCompletionChunk[] = [];
    for await (const chunk of stream) chunks.push(chunk);
    const ids = chunks.map((chunk) => extension.parse(chunk));
    expect(new Set(ids.map(({ session_id }) => session_id)).size).toBe(1);
    expect(new Set(ids.map(({ turn_id }) => turn_id)).size).toBe(1);
    expect(chunks.slice(0, -1).every(({ usage }) => usage === null)).toBe(true);
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: 15 } });
  });

  it("continues a Session by repeating its history, in a new Turn", async () => {
    const { chat } = await clientOf("history");
    const ask = async (messages: OpenAI.ChatCompletionMessageParam[]) =>
      extension.parse(await chat.completions.create({ model, messages }));
    const first = await ask([hello]);
    const reply = { role: "assistant" as const, content: scripted.hello };
    const second = await ask([hello, reply, hello]);
    expect(second.session_id).toBe(first.session_id);
    expect(second.turn_id).not.toBe(first.turn_id);
    const other = await ask([{ role: "user", content: "Say hello again" }]);
    expect(other.session_id).not.toBe(first.session_id);
  });

  it("streams a tool call in pieces that join to its arguments", async () => {
    const { chat } = await clientOf("tool-stream");
    const stream = chat.completions.stream({
      model,
      messages: [{ role: "user", content: "What is the weather in Paris?" }],
      tools: [{ type: "function", function: { name: "get_weather", parameters: {} } }],
    });
    const { choices } = await stream.finalChatCompletion();
    expect(choices[0]?.finish_reason).toBe("tool_calls");
    expect(choices[0]?.message.tool_calls?.[0]).toMatchObject({
      id: "call_paris",
      function: { name: "get_weather", arguments: '{"city":"Paris"}' },
    });
  });

  it("lists the models and reads one", async () => {
    const { models } = await clientOf("models");
    const listed: string[] = [];
    for await (const { id } of models.list()) listed.push(id);
    expect(listed).toEqual([model]);
    expect(await models.retrieve(model)).toMatchObject({ id: model, object: "model" });
    await expect(models.retrieve("mock/openai/other")).rejects.toThrow(OpenAI.NotFoundError);
  });

  it("gets a precise error for a parameter that is not supported, before anything is sent", async () => {
    const { chat } = await clientOf("unsupported");
    const asked = running.upstream.bodies().length;
    const error: unknown = await chat.completions
      .create({ model, messages: [hello], n: 2 })
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(OpenAI.BadRequestError);
    expect(error).toMatchObject({ type: "invalid_request_error", param: "n" });
    expect(running.upstream.bodies()).toHaveLength(asked);
  });
});
