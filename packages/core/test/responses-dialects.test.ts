import { readdirSync, readFileSync } from "node:fs";
import { openaiCompatible } from "@tollgate/provider-openai";
import { createTestGateway, scriptedUpstream } from "@tollgate/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { createEventProblems } from "./published-events.ts";
import { createPublishedSchemas } from "./published-schema.ts";
import {
  eventsOf,
  lastResponse,
  type ResponseObject,
  responseOf,
  responsesOf,
} from "./responses-calls.ts";

const fixtures = new URL("../../provider-openai/test/fixtures/", import.meta.url);
const read = (name: string) => readFileSync(new URL(name, fixtures), "utf8");
const streams = readdirSync(fixtures).filter((name) => name.endsWith(".sse"));

const problems = createPublishedSchemas();
const eventProblems = createEventProblems(problems);

const types = { sse: "text/event-stream", json: "application/json" } as const;

/** Asks a gateway whose upstream answers with these bytes. */
async function ask(stream: boolean, body: string, type: keyof typeof types) {
  const upstream = await scriptedUpstream(async ({ send, end }) => {
    await send(`HTTP/1.1 200 OK\r\ncontent-type: ${types[type]}\r\nconnection: close\r\n\r\n`);
    await send(body);
    end();
  });
  const provider = openaiCompatible({ baseURL: `${upstream.url}/v1`, apiKey: null });
  const { gateway, key } = await createTestGateway({ providers: { upstream: provider } });
  onTestFinished(async () => {
    await gateway.close();
    await upstream.close();
  });
  const responses = responsesOf(gateway, key.secret);
  const answer = await responses.post({ model: "upstream/acme/m-1", stream });
  expect(answer.status).toBe(200);
  return { responses, answer };
}

const toolCall = z.looseObject({
  id: z.string().optional(),
  function: z.looseObject({ name: z.string().optional(), arguments: z.string().optional() }),
});
const chunk = z.looseObject({
  choices: z.array(
    z.looseObject({
      delta: z.looseObject({ tool_calls: z.array(toolCall).optional() }).optional(),
      finish_reason: z.string().nullish(),
    }),
  ),
  usage: z.unknown().optional(),
});

/** The plain answer equivalent to a stream of chunks, in the same dialect. */
function plainAnswer(stream: string): string {
  const chunks = stream
    .split(/\r?\n/)
    .flatMap((line) => /^data: ?(\{.*)$/.exec(line)?.[1] ?? [])
    .map((data) => chunk.parse(JSON.parse(data)));
  const deltas = chunks
    .map(({ choices }) => choices[0]?.delta)
    .filter((delta) => delta !== undefined);
  const said = (name: string) => {
    const text = deltas.map((delta) => delta[name] ?? "").join("");
    return text === "" ? {} : { [name]: text };
  };
  const calls: z.infer<typeof toolCall>[] = [];
  for (const call of deltas.flatMap((delta) => delta.tool_calls ?? [])) {
    const last = calls.at(-1);
    if (call.id !== undefined || last === undefined) calls.push(call);
    else {
      const written = `${last.function.arguments ?? ""}${call.function.arguments ?? ""}`;
      calls[calls.length - 1] = { ...last, function: { ...last.function, arguments: written } };
    }
  }
  const message = {
    role: "assistant",
    content: null,
    ...said("content"),
    ...said("reasoning_content"),
    ...said("reasoning"),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
  const last = chunks.find(({ choices }) => choices[0]?.finish_reason)?.choices[0];
  const choices = [{ index: 0, message, finish_reason: last?.finish_reason }];
  const usage = chunks.findLast((one) => one.usage)?.usage;
  return JSON.stringify({ ...chunks[0], object: "chat.completion", choices, usage });
}

/** A response without the ids that differ in each. */
const alike = ({ id, output, usage, status }: ResponseObject): unknown =>
  JSON.parse(JSON.stringify({ output, usage, status }).replaceAll(id.slice("resp_".length), "id"));

/** The text that the user sees, in every dialect. */
const shown: Readonly<Record<string, readonly string[]>> = {
  "standard.sse": ["Grüße, 世界 🌍!"],
  "tool-calls.sse": ['get_weather {"city":"Zürich"}'],
  "reasoning-content.sse": ["(Two and two.)", "Four"],
  "reasoning.sse": ["(Two and two.)", "Four"],
  "usage-on-finish.sse": ["Four"],
  "no-usage.sse": ["Four"],
  "no-done.sse": ["Four"],
  "signed-tool-call.sse": ['add {"a":1}'],
  "tool-without-index.sse": ['add {"a":1}', 'add {"a":2}'],
  "filtered-prompt.sse": ["Four"],
  "crlf.sse": ["Four 🌍"],
};

const words = z.array(z.looseObject({ text: z.string() })).length(1);
const item = z.union([
  z
    .looseObject({ name: z.string(), arguments: z.string() })
    .transform((call) => `${call.name} ${call.arguments}`),
  z.looseObject({ content: words }).transform(({ content }) => content[0]?.text),
  z.looseObject({ summary: words }).transform(({ summary }) => `(${summary[0]?.text})`),
]);

describe("upstreams of every dialect, behind Responses", () => {
  it("are all tested", () => expect(streams.toSorted()).toEqual(Object.keys(shown).toSorted()));

  it.each(streams)("%s: valid events, and the same answer in every form (W1)", async (name) => {
    const { responses, answer } = await ask(true, read(name), "sse");
    const events = await eventsOf(answer);
    for (const event of events) expect(eventProblems(event), event.type).toEqual([]);
    const streamed = lastResponse(events);
    expect(streamed.output.map((one) => item.parse(one))).toEqual(shown[name]);
    expect(await (await responses.get(streamed.id)).json()).toEqual(streamed);

    const plain = await responseOf((await ask(false, plainAnswer(read(name)), "json")).answer);
    expect(alike(plain)).toEqual(alike(streamed));
    expect(problems("Response", plain)).toEqual([]);

    const unasked = await responseOf((await ask(false, read(name), "sse")).answer);
    expect(alike(unasked)).toEqual(alike(streamed));
  });

  it.each(["standard", "tool-calls"])(
    "%s.json and %s.sse contain the same answer",
    async (name) => {
      const plain = await responseOf((await ask(false, read(`${name}.json`), "json")).answer);
      const { answer } = await ask(true, read(`${name}.sse`), "sse");
      expect(alike(plain)).toEqual(alike(lastResponse(await eventsOf(answer))));
    },
  );
});
