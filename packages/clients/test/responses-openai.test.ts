import OpenAI from "openai";
import { zodTextFormat } from "openai/helpers/zod";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { toolOutputs, weatherTool } from "./clients/openai-responses-client.ts";
import { model } from "./gateway-options.ts";
import { runGateway } from "./run-gateway.ts";
import { serveInMemory, serveInProcess } from "./served-gateway.ts";
import { scripted } from "./upstream.ts";

const redSquare = "data:image/png;base64,iVBORw0KGgo=";

describe.each([
  ["memoryStore", serveInMemory],
  ["sqliteStore", serveInProcess],
] as const)("client.responses of the official SDK, on %s", (_, start) => {
  const running = runGateway(start);

  async function clientOf(user: string) {
    const apiKey = await running.gateway.createKey({ user, label: "laptop" });
    return new OpenAI({ baseURL: running.gateway.baseURL, apiKey, maxRetries: 0 }).responses;
  }

  it("retrieves a created response, lists its input items, and deletes it", async () => {
    const responses = await clientOf("stored");
    const input = [
      { role: "user" as const, content: "First" },
      { role: "user" as const, content: "Second" },
      { role: "user" as const, content: "Say hello" },
    ];
    const created = await responses.create({ model, input });
    expect(created.output_text).toBe(scripted.hello);
    expect(await responses.retrieve(created.id)).toEqual(created);
    const items = [];
    for await (const item of responses.inputItems.list(created.id, { limit: 1, order: "asc" }))
      items.push(item);
    expect(items).toMatchObject(
      input.map(({ content }) => ({
        role: "user",
        content: [{ type: "input_text", text: content }],
      })),
    );
    await responses.delete(created.id);
    for (const ask of [
      responses.retrieve(created.id),
      responses.delete(created.id),
      responses.inputItems.list(created.id),
    ])
      await expect(ask).rejects.toBeInstanceOf(OpenAI.NotFoundError);
    await expect(
      responses.create({ model, input: "Say hello", previous_response_id: created.id }),
    ).rejects.toMatchObject({ status: 400, code: "previous_response_not_found" });
  });

  it("hides a response from another key of the same user", async () => {
    const [mine, other] = [await clientOf("shared"), await clientOf("shared")];
    const { id } = await mine.create({ model, input: "Say hello" });
    await expect(other.retrieve(id)).rejects.toBeInstanceOf(OpenAI.NotFoundError);
  });

  it("streams every event in order, and the last one matches the stored response", async () => {
    const responses = await clientOf("events");
    const stream = responses.stream({ model, input: "Say hello" });
    const types: string[] = [];
    for await (const { type } of stream) types.push(type);
    expect([types[0], types[1], types.at(-1)]).toEqual([
      "response.created",
      "response.in_progress",
      "response.completed",
    ]);
    const final = await stream.finalResponse();
    expect(final.output_text).toBe(scripted.hello);
    const { output_parsed, ...response } = final;
    expect(output_parsed).toBeNull();
    expect(await responses.retrieve(final.id)).toMatchObject({
      id: response.id,
      usage: response.usage,
    });
  });

  it("parses structured output, and continues it in a second Turn by id", async () => {
    const responses = await clientOf("turns");
    const format = zodTextFormat(z.object({ city: z.string(), degrees: z.number() }), "degrees");
    const first = await responses.parse({ model, input: "As JSON: the weather", text: { format } });
    expect(first.output_parsed).toEqual(scripted.degrees);
    await responses.create({ model, input: "Say hello", previous_response_id: first.id });
    expect(running.upstream.bodies().at(-1)).toMatchObject({
      messages: [
        { role: "user", content: "As JSON: the weather" },
        { role: "assistant", content: JSON.stringify(scripted.degrees) },
        { role: "user", content: "Say hello" },
      ],
    });
    const rows = await running.gateway.activity("turns");
    expect(new Set(rows.map(({ sessionId }) => sessionId)).size).toBe(1);
    expect(new Set(rows.map(({ turnId }) => turnId)).size).toBe(2);
  });

  it("loops over a tool without storage, sending its output back as input", async () => {
    const responses = await clientOf("stateless");
    const asked = { model, tools: [weatherTool], store: false };
    const input: OpenAI.Responses.ResponseInputItem[] = [
      {
        role: "user",
        content: [
          { type: "input_text", text: "What is the weather in Paris?" },
          { type: "input_image", image_url: redSquare, detail: "auto" },
        ],
      },
    ];
    const first = await responses.create({ ...asked, input });
    const calls = first.output.filter((item) => item.type === "function_call");
    expect(calls).toEqual(first.output);
    input.push(...calls, ...toolOutputs(first, () => "18 degrees"));
    const second = await responses.create({ ...asked, input });
    expect(second.output_text).toBe(scripted.weather);
    await expect(responses.retrieve(second.id)).rejects.toBeInstanceOf(OpenAI.NotFoundError);
    const rows = await running.gateway.activity("stateless");
    expect(rows.map(({ stepNumber, sessionId }) => [stepNumber, sessionId])).toEqual([
      [1, rows[1]?.sessionId],
      [0, rows[1]?.sessionId],
    ]);
  });

  it("throws for unsupported features", async () => {
    const responses = await clientOf("refused");
    const hosted = responses.create({ model, input: "Say hello", tools: [{ type: "web_search" }] });
    await expect(hosted).rejects.toMatchObject({ status: 400, param: "tools[0].type" });
    const background = responses.create({ model, input: "Say hello", background: true });
    await expect(background).rejects.toMatchObject({ status: 400, param: "background" });
    await expect(responses.cancel("resp_x")).rejects.toBeInstanceOf(OpenAI.BadRequestError);
    const compacted = responses.compact({ model });
    await expect(compacted).rejects.toBeInstanceOf(OpenAI.BadRequestError);
  });
});
