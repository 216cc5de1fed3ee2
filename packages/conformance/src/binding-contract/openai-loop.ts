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

/** The model asks for the weather, then reports it. */
function script(provider: ScriptedProvider): void {
  provider.reply({ toolCalls: [{ name: "get_weather", arguments: ['{"city":', '"Paris"}'] }] });
  provider.reply({ text: ["It is ", "18 degrees."] });
}

/** The result of one round of Chat Completions. */
interface Round {
  text: string;
  toolCallId?: string;
  arguments: string;
}

type Conversation = OpenAI.Chat.ChatCompletionMessageParam[];

const chatTools = [
  {
    type: "function" as const,
    function: { name: "get_weather", description: "The weather of a city", parameters: citySchema },
  },
];

async function askPlain(client: OpenAI, messages: Conversation): Promise<Round> {
  const answer = await client.chat.completions.create({ model, messages, tools: chatTools });
  const message = answer.choices[0]?.message;
  const [toolCall] = message?.tool_calls ?? [];
  const text = message?.content ?? "";
  if (toolCall === undefined || !("function" in toolCall)) return { text, arguments: "" };
  return { text, toolCallId: toolCall.id, arguments: toolCall.function.arguments };
}

async function askStreamed(client: OpenAI, messages: Conversation): Promise<Round> {
  const request = { model, messages, tools: chatTools, stream: true } as const;
  const round: Round = { text: "", arguments: "" };
  for await (const { choices } of await client.chat.completions.create(request)) {
    const delta = choices[0]?.delta;
    const [toolCall] = delta?.tool_calls ?? [];
    round.text += delta?.content ?? "";
    round.arguments += toolCall?.function?.arguments ?? "";
    if (toolCall?.id) round.toolCallId = toolCall.id;
  }
  return round;
}

/** The answer of one Responses call, through the SDK's plain call or its stream. */
async function respond(
  client: OpenAI,
  stream: boolean,
  next: { readonly input: OpenAI.Responses.ResponseInput | string; previous_response_id?: string },
): Promise<OpenAI.Responses.Response> {
  const tools = [
    {
      type: "function" as const,
      name: "get_weather",
      description: "The weather of a city",
      parameters: citySchema,
      strict: true,
    },
  ];
  if (!stream) return client.responses.create({ model, tools, ...next });
  for await (const event of await client.responses.create({ model, tools, ...next, stream })) {
    if (event.type === "response.completed") return event.response;
  }
  throw new Error("the stream of a response ended without response.completed");
}

const textOf = ({ output }: OpenAI.Responses.Response): string =>
  output
    .flatMap((item) => (item.type === "message" ? item.content : []))
    .map((part) => (part.type === "output_text" ? part.text : ""))
    .join("");

/** A tool loop through the OpenAI SDK in both protocols, with calls that every release since 4 has. */
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
    it.each([false, true])(
      "runs a tool loop over Chat Completions, streamed: %s",
      async (stream) => {
        const { client, turns } = await driveClient();
        const ask = stream ? askStreamed : askPlain;
        const messages: Conversation = [{ role: "user", content }];
        const { toolCallId = "", arguments: place } = await ask(client, messages);
        expect(place).toBe('{"city":"Paris"}');
        const toolCall = { name: "get_weather", arguments: place };
        messages.push(
          {
            role: "assistant",
            tool_calls: [{ id: toolCallId, type: "function", function: toolCall }],
          },
          { role: "tool", tool_call_id: toolCallId, content: "18 degrees" },
        );
        expect((await ask(client, messages)).text).toBe("It is 18 degrees.");
        expect(await turns()).toEqual({ calls: 2, turns: 1 });
      },
    );

    it.each([false, true])("runs a tool loop over Responses, streamed: %s", async (stream) => {
      const { client, turns } = await driveClient();
      const first = await respond(client, stream, { input: content });
      const outputs = first.output.flatMap((item) =>
        item.type === "function_call"
          ? [{ type: "function_call_output" as const, call_id: item.call_id, output: "18 degrees" }]
          : [],
      );
      expect(outputs).toHaveLength(1);
      const second = await respond(client, stream, {
        input: outputs,
        previous_response_id: first.id,
      });
      expect(textOf(second)).toBe("It is 18 degrees.");
      expect(await turns()).toEqual({ calls: 2, turns: 1 });
    });
  });
}
