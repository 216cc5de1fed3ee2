import type { ScriptedProvider } from "@tollgate/testing";
import OpenAI from "openai";
import { describe, expect, it } from "vitest";
import type { Binding } from "./binding.ts";
import { drive, model } from "./drive.ts";

const citySchema = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};
const content = "What is the weather in Paris?";

/** The model asks for the weather, and then says it. */
function script(provider: ScriptedProvider): void {
  provider.reply({ toolCalls: [{ name: "get_weather", arguments: ['{"city":', '"Paris"}'] }] });
  provider.reply({ text: ["It is ", "18 degrees."] });
}

/** The loop of the OpenAI SDK over a tool, in both protocols. */
export function describeOpenAi(binding: Binding): void {
  async function driveClient() {
    const { gateway, mounted, key, provider } = await drive(binding);
    script(provider);
    const client = new OpenAI({ baseURL: `${mounted}/v1`, apiKey: key.secret, maxRetries: 0 });
    const turns = async () => {
      const { data } = await gateway.activity.list({ organizationId: key.organizationId });
      return { calls: data.length, turns: new Set(data.map(({ turnId }) => turnId)).size };
    };
    return { client, turns };
  }

  describe("the OpenAI SDK", () => {
    it.each([false, true])("runs its loop over Chat Completions, streamed: %s", async (stream) => {
      const { client, turns } = await driveClient();
      const cities: string[] = [];
      const getWeather = {
        type: "function" as const,
        function: {
          name: "get_weather",
          description: "The weather of a city",
          parameters: citySchema,
          parse: (text: string): unknown => JSON.parse(text),
          function: (place: unknown) => {
            cities.push(JSON.stringify(place));
            return "18 degrees";
          },
        },
      };
      const request = {
        model,
        messages: [{ role: "user" as const, content }],
        tools: [getWeather],
      };
      const loop = stream
        ? client.chat.completions.runTools({ ...request, stream })
        : client.chat.completions.runTools(request);
      expect(await loop.finalContent()).toBe("It is 18 degrees.");
      expect(cities).toEqual(['{"city":"Paris"}']);
      expect(await turns()).toEqual({ calls: 2, turns: 1 });
    });

    it.each([false, true])("runs its loop over Responses, streamed: %s", async (stream) => {
      const { client, turns } = await driveClient();
      const { responses } = client;
      const tools = [
        { type: "function" as const, name: "get_weather", parameters: citySchema, strict: true },
      ];
      const create = (request: { readonly input: OpenAI.Responses.ResponseInput | string }) =>
        stream
          ? responses.stream({ model, tools, ...request }).finalResponse()
          : responses.create({ model, tools, ...request });
      const first = await create({ input: content });
      const outputs = first.output.flatMap((item) =>
        item.type === "function_call"
          ? [{ type: "function_call_output" as const, call_id: item.call_id, output: "18 degrees" }]
          : [],
      );
      expect(outputs).toHaveLength(1);
      const next = { input: outputs, previous_response_id: first.id };
      expect((await create(next)).output_text).toBe("It is 18 degrees.");
      expect(await turns()).toEqual({ calls: 2, turns: 1 });
    });
  });
}
