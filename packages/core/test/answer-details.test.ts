import { openaiCompatible } from "@tollgate/provider-openai";
import { createTestGateway, scriptedUpstream } from "@tollgate/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { createEventProblems } from "./published-events.ts";
import { createPublishedSchemas } from "./published-schema.ts";
import { eventsOf, lastResponse, type ResponseObject, responsesOf } from "./responses-calls.ts";

const problems = createPublishedSchemas();
const eventProblems = createEventProblems(problems);

/** A gateway whose upstream answers each request with the next of these bodies. A list is a stream of events. */
async function upstreamAnswers(...bodies: readonly (object | readonly object[])[]) {
  const upstream = await scriptedUpstream(async ({ send, end }, number) => {
    const body = bodies[number - 1];
    const type = Array.isArray(body) ? "text/event-stream" : "application/json";
    await send(`HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\nconnection: close\r\n\r\n`);
    if (!Array.isArray(body)) await send(JSON.stringify(body));
    else for (const event of body) await send(`data: ${JSON.stringify(event)}\n\n`);
    end();
  });
  const provider = openaiCompatible({ baseURL: `${upstream.url}/v1`, apiKey: null });
  const test = await createTestGateway({ providers: { upstream: provider } });
  onTestFinished(async () => {
    await test.gateway.close();
    await upstream.close();
  });
  return {
    ...test,
    responses: responsesOf(test.gateway, test.key.secret),
    bodyAt: (index: number) => JSON.parse(upstream.requests[index]?.body ?? "null"),
  };
}

const model = "upstream/acme/m-1";
const finish = { index: 0, delta: {}, finish_reason: "stop" };
const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
const plainOf = (message: object, members: object = {}) => ({
  choices: [
    { index: 0, message: { role: "assistant", ...message }, finish_reason: "stop", ...members },
  ],
  usage,
});
const chunkOf = (delta: object, members: object = {}) => ({
  choices: [{ index: 0, delta, finish_reason: null, ...members }],
});
const last = { choices: [finish], usage };

/** A response without the members that differ in each. */
const alike = ({ id, output, status }: ResponseObject): unknown =>
  JSON.parse(JSON.stringify({ output, status }).replaceAll(id.slice("resp_".length), "id"));

const token = (text: string, logprob: number) => ({
  token: text,
  logprob,
  bytes: [...Buffer.from(text)],
});
const first = { ...token("Grü", -0.1), top_logprobs: [token("Grü", -0.1), token("Hal", -2.5)] };
const second = { ...token("ße", -0.2), top_logprobs: [token("ße", -0.2), token("lo", -3)] };

describe("log probabilities on Responses", () => {
  it("are requested upstream, and shown alike in plain, streamed and stored answers", async () => {
    const { responses, bodyAt } = await upstreamAnswers(
      plainOf({ content: "Grüße" }, { logprobs: { content: [first, second], refusal: null } }),
      [
        chunkOf({ role: "assistant", content: "" }, { logprobs: { content: [] } }),
        chunkOf({ content: "Grü" }, { logprobs: { content: [first] } }),
        chunkOf({ content: "ße" }, { logprobs: { content: [second] } }),
        last,
      ],
    );
    const asked = { model, top_logprobs: 20, include: ["message.output_text.logprobs"] };
    const plain = await responses.create(asked);
    expect(bodyAt(0)).toMatchObject({ logprobs: true, top_logprobs: 20 });
    expect(plain).toMatchObject({
      top_logprobs: 20,
      output: [
        {
          content: [
            { type: "output_text", text: "Grüße", annotations: [], logprobs: [first, second] },
          ],
        },
      ],
    });
    expect(problems("Response", plain)).toEqual([]);

    const events = await eventsOf(await responses.post({ ...asked, stream: true }));
    expect(bodyAt(1)).toMatchObject({ logprobs: true, top_logprobs: 20 });
    for (const event of events) expect(eventProblems(event), event.type).toEqual([]);
    const told = (type: string) =>
      events.filter((event) => event.type === `response.output_text.${type}`);
    expect(told("delta").map(({ delta, logprobs }) => [delta, logprobs])).toEqual([
      ["Grü", [first]],
      ["ße", [second]],
    ]);
    expect(told("done").map(({ logprobs }) => logprobs)).toEqual([[first, second]]);
    const streamed = lastResponse(events);
    expect(alike(streamed)).toEqual(alike(plain));
    expect(await (await responses.get(streamed.id)).json()).toEqual(streamed);
  });

  it("are not requested if the client wants none", async () => {
    const { responses, bodyAt } = await upstreamAnswers(plainOf({ content: "Hi" }));
    expect(await responses.create({ model, top_logprobs: 0 })).toMatchObject({ top_logprobs: 0 });
    expect(bodyAt(0)).not.toHaveProperty("logprobs");
    expect(bodyAt(0)).not.toHaveProperty("top_logprobs");
  });

  it("are requested without alternatives if the client only includes them", async () => {
    const { top_logprobs: _, ...chosen } = first;
    const { responses, bodyAt } = await upstreamAnswers(
      plainOf({ content: "Grü" }, { logprobs: { content: [chosen], refusal: null } }),
    );
    const answer = await responses.create({ model, include: ["message.output_text.logprobs"] });
    expect(bodyAt(0)).toHaveProperty("logprobs", true);
    expect(bodyAt(0)).not.toHaveProperty("top_logprobs");
    const part = { type: "output_text", logprobs: [{ ...chosen, top_logprobs: [] }] };
    expect(answer).toMatchObject({ top_logprobs: 0, output: [{ content: [part] }] });
    expect(problems("Response", answer)).toEqual([]);
  });

  it("are valid if the upstream omits optional members", async () => {
    const bare = { token: "Hi", logprob: -1 };
    const strange = [null, { token: 5, logprob: 0 }, { token: "x" }];
    const { responses } = await upstreamAnswers(
      plainOf(
        { content: "Hi" },
        { logprobs: { content: [bare, ...strange, { ...bare, bytes: null }] } },
      ),
    );
    const response = await responses.create({ model, top_logprobs: 1 });
    const shown = { ...bare, bytes: [], top_logprobs: [] };
    expect(response.output).toMatchObject([{ content: [{ logprobs: [shown, shown] }] }]);
    expect(problems("Response", response)).toEqual([]);
  });

  it("are refused for more than 20 tokens", async () => {
    const { responses } = await upstreamAnswers();
    const refused = await responses.post({ model, top_logprobs: 21 });
    expect(refused.status).toBe(400);
    expect(await refused.json()).toMatchObject({ error: { param: "top_logprobs" } });
  });
});

describe("sources cited by an upstream", () => {
  const cited = { start_index: 0, end_index: 3, url: "https://a.test/x", title: "A" };
  const nested = { type: "url_citation", url_citation: { ...cited, content: "…" } };
  const citation = { type: "url_citation", ...cited };

  it("are shown as annotations alike in plain, streamed and stored Responses", async () => {
    const { responses } = await upstreamAnswers(
      plainOf({ content: "Yes.", annotations: [nested, { type: "of_its_own" }, citation] }),
      [
        chunkOf({ role: "assistant", annotations: [nested] }),
        chunkOf({ content: "Yes." }),
        chunkOf({ annotations: [{ type: "of_its_own" }, citation] }),
        last,
      ],
    );
    const plain = await responses.create({ model });
    expect(plain.output).toMatchObject([
      { content: [{ text: "Yes.", annotations: [citation, citation], logprobs: [] }] },
    ]);
    expect(problems("Response", plain)).toEqual([]);

    const events = await eventsOf(await responses.post({ model, stream: true }));
    for (const event of events) expect(eventProblems(event), event.type).toEqual([]);
    const added = events.filter(({ type }) => type === "response.output_text.annotation.added");
    expect(added.map((event) => [event["annotation_index"], event["annotation"]])).toEqual([
      [0, citation],
      [1, citation],
    ]);
    const streamed = lastResponse(events);
    expect(alike(streamed)).toEqual(alike(plain));
    expect(await (await responses.get(streamed.id)).json()).toEqual(streamed);
  });

  it("may come back with the history", async () => {
    const { responses } = await upstreamAnswers(
      plainOf({ content: "Yes.", annotations: [nested] }),
      plainOf({ content: "Sure." }),
    );
    const { output } = await responses.create({ model, input: "Is it?" });
    const question = { role: "user", content: "Is it?" };
    const again = { role: "user", content: "Sure?" };
    expect((await responses.post({ model, input: [question, ...output, again] })).status).toBe(200);
  });
});

describe("the configuration reported by an upstream", () => {
  it("is shown to clients of Chat Completions, plain and streamed", async () => {
    const { gateway, chat } = await upstreamAnswers(
      { ...plainOf({ content: "Hi" }), system_fingerprint: "fp_1" },
      [
        { ...chunkOf({ content: "Hi" }), system_fingerprint: "fp_1" },
        { ...last, system_fingerprint: "fp_1" },
      ],
    );
    const plain = await gateway.fetch(chat({ model }));
    expect(await plain.json()).toMatchObject({ system_fingerprint: "fp_1" });
    const streamed = await gateway.fetch(chat({ model, stream: true }));
    expect(await streamed.text()).toContain('"system_fingerprint":"fp_1"');
  });
});
