import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { createGateway } from "@tollgate/core";
import { openaiCompatible } from "@tollgate/provider-openai";
import { memoryStore } from "@tollgate/store-memory";
import { describe, expect, it, onTestFinished } from "vitest";
import { z } from "zod";

const members = z.record(z.string(), z.unknown());

/** A recorded conversation of a client: its requests, and the upstream's answers. */
const recording = z.strictObject({
  client: z.string(),
  endpoint: z.enum(["chat/completions", "responses", "messages"]),
  exchanges: z.array(
    z.strictObject({
      request: members,
      answer: members,
      /** The parts of a response's output that the client relies on. */
      output: z.array(members).optional(),
    }),
  ),
  /** The Turn and the number of each Step. */
  turns: z.array(z.number()),
  stepNumbers: z.array(z.number()),
  /** The content that the last Step omits. */
  dropped: members,
  /** The upstream's last request: its messages, and these of its other members. */
  upstream: z.array(members),
  body: members.optional(),
  /** The parts of the last answer that the client relies on. */
  answer: members.optional(),
});

const folder = new URL("recorded/", import.meta.url);
const recordings = readdirSync(folder).map((name) =>
  recording.parse(JSON.parse(readFileSync(new URL(name, folder), "utf8"))),
);

/** An upstream that answers with these messages in order. */
async function startUpstream(answers: readonly object[]) {
  const bodies: Record<string, unknown>[] = [];
  const server = createServer(async (request, response) => {
    bodies.push(members.parse(JSON.parse(await text(request))));
    const message = answers[bodies.length - 1] ?? {};
    const finish_reason = "tool_calls" in message ? "tool_calls" : "stop";
    const usage = { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 };
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ choices: [{ index: 0, message, finish_reason }], usage }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { baseURL: `http://127.0.0.1:${port}/v1`, bodies };
}

async function startGateway(baseURL: string) {
  const organizationId = "acme";
  const gateway = createGateway({
    store: memoryStore(),
    providers: { test: openaiCompatible({ baseURL, apiKey: null }) },
  });
  onTestFinished(() => gateway.close());
  const { secret } = await gateway.keys.create({ organizationId, userId: "ann", label: "laptop" });
  const steps = async () =>
    (await gateway.steps.list({ organizationId, user: "ann" })).data.toReversed();
  const stepOf = (id: string) => gateway.steps.get({ organizationId, id });
  const post = (endpoint: string, body: object) =>
    gateway.fetch(`http://gateway/v1/${endpoint}`, {
      method: "POST",
      headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  return { post, steps, stepOf };
}

describe("the history that a client keeps", () => {
  it.each(recordings)("continues one Session: $client", async (recorded) => {
    const upstream = await startUpstream(recorded.exchanges.map(({ answer }) => answer));
    const { post, steps, stepOf } = await startGateway(upstream.baseURL);
    let last: Record<string, unknown> = {};
    for (const { request, output } of recorded.exchanges) {
      const answer = await post(recorded.endpoint, request);
      last = members.parse(await answer.json());
      expect([answer.status, last["error"] ?? null]).toEqual([200, null]);
      if (output !== undefined) expect(last["output"]).toMatchObject(output);
    }
    expect(last).toMatchObject(recorded.answer ?? {});

    const made = await steps();
    const turns = [...new Set(made.map(({ turnId }) => turnId))];
    expect(new Set(made.map(({ sessionId }) => sessionId)).size).toBe(1);
    expect(made.map(({ turnId }) => turns.indexOf(turnId))).toEqual(recorded.turns);
    expect(made.map(({ stepNumber }) => stepNumber)).toEqual(recorded.stepNumbers);
    const step = await stepOf(made.at(-1)?.id ?? "");
    expect(step?.droppedFields).toEqual(recorded.dropped);

    const sent = upstream.bodies.at(-1);
    expect(sent).toMatchObject({ ...recorded.body, messages: recorded.upstream });
    expect(sent).not.toHaveProperty("reasoning");
    const left = Object.keys(recorded.dropped).filter((name) => !["role", "name"].includes(name));
    for (const message of z.array(members).parse(sent?.["messages"]))
      for (const name of left) expect(message).not.toHaveProperty(name);
  });
});
