import { createGateway, formatUsd } from "@tollgate/core";
import { simProvider } from "@tollgate/provider-sim";
import { memoryStore } from "@tollgate/store-memory";
import OpenAI from "openai";

await using gateway = createGateway({ store: memoryStore(), providers: { sim: simProvider() } });
const { secret } = await gateway.keys.create({
  organizationId: "acme",
  userId: "ada",
  label: "job",
});

// The SDK calls the gateway in place of `fetch`, without a server or a socket.
const client = new OpenAI({
  baseURL: "http://in-process/v1",
  apiKey: secret,
  fetch: gateway.fetch,
});
const model = "sim/tollgate/echo";

const weather = client.chat.completions.runTools({
  model,
  messages: [{ role: "user", content: "What is the weather in Paris?" }],
  tools: [
    {
      type: "function",
      function: {
        name: "get_weather",
        description: "The weather of a city",
        parameters: {
          type: "object",
          properties: { city: { type: "string" } },
          required: ["city"],
        },
        function: () => "18 degrees",
      },
    },
  ],
});
console.log(await weather.finalContent());

// Code that knows its user doesn't need a key. It calls as that user.
const ada = gateway.as({ organizationId: "acme", userId: "ada", label: "web", source: "app" });
const web = new OpenAI({ baseURL: "http://in-process/v1", apiKey: "unused", fetch: ada.fetch });
const stream = web.responses.stream({ model, input: "Good morning" });
for await (const event of stream)
  if (event.type === "response.output_text.delta") process.stdout.write(event.delta);
console.log();

const { data } = await gateway.activity.list({ organizationId: "acme" });
const total = data.reduce((sum, { costNanoUsd }) => sum + (costNanoUsd ?? 0), 0);
const labels = [...new Set(data.map(({ keyLabel }) => keyLabel))];
console.log(`${data.length} calls by ${labels.join(" and ")}, ${formatUsd(total)}`);
