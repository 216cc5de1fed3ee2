import { createTestGateway, type TestGatewayOptions } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { itemsOf, responsesOf } from "./responses-calls.ts";
import { stores } from "./stores.ts";

const image = "data:image/png;base64,iVBORw0KGgo=";
const weather = { type: "function", name: "get_weather", parameters: { type: "object" } };
const format = { type: "json_schema", name: "degrees", schema: { type: "object" }, strict: true };

async function start(options: TestGatewayOptions = {}) {
  const test = await createTestGateway({ maintenance: false, ...options });
  const { gateway, key, provider } = test;
  const { organizationId } = key;
  return {
    ...test,
    responses: responsesOf(gateway, key.secret),
    asked: () => provider.calls.at(-1)?.request.messages,
    steps: async () => (await gateway.steps.list({ organizationId })).data,
    sessions: async () => (await gateway.sessions.list({ organizationId })).data,
  };
}

describe.each(stores)("previous_response_id, on %s", (_, open) => {
  it("includes earlier inputs and outputs, oldest first: tools, images and structured output", async () => {
    const { provider, responses, asked, steps, sessions } = await start({ store: open() });
    provider.reply({
      reasoning: "Which city?",
      text: "Let me see.",
      toolCalls: [
        { name: "get_weather", arguments: '{"city":"Paris"}', id: "call_a" },
        { name: "get_weather", arguments: '{"city":"Rome"}', id: "call_b" },
      ],
    });
    const question = [
      { type: "input_text", text: "Warmer here?" },
      { type: "input_image", image_url: image, detail: "low" },
    ];
    const first = await responses.create({
      input: [{ role: "user", content: question }],
      tools: [weather],
    });
    provider.reply('{"warmer":"Rome"}');
    const second = await responses.create({
      previous_response_id: first.id,
      input: [
        { type: "function_call_output", call_id: "call_a", output: "18" },
        { type: "function_call_output", call_id: "call_b", output: "24" },
      ],
      text: { format },
      tools: [weather],
    });
    await responses.create({ previous_response_id: second.id, input: "Thanks." });
    expect(asked()).toEqual([
      {
        role: "user",
        content: [
          { type: "text", text: "Warmer here?" },
          { type: "image_url", image_url: { url: image, detail: "low" } },
        ],
      },
      {
        role: "assistant",
        content: "Let me see.",
        tool_calls: [call("call_a", "Paris"), call("call_b", "Rome")],
      },
      { role: "tool", tool_call_id: "call_a", content: "18" },
      { role: "tool", tool_call_id: "call_b", content: "24" },
      { role: "assistant", content: '{"warmer":"Rome"}' },
      { role: "user", content: "Thanks." },
    ]);
    expect(provider.calls[1]?.request.responseFormat).toMatchObject({ name: "degrees" });
    expect(provider.calls[2]?.request.responseFormat).toBeUndefined();
    expect(await sessions()).toHaveLength(1);
    const [third, ...others] = await steps();
    expect(others.map(({ turnId, stepNumber }) => [turnId === third?.turnId, stepNumber])).toEqual([
      [false, 1],
      [false, 0],
    ]);
    expect([third?.stepNumber, others[0]?.turnId]).toEqual([0, others[1]?.turnId]);
  });

  it("doesn't include earlier instructions, and changing them doesn't break the Session", async () => {
    const { gateway, key, store, responses, asked, steps, sessions } = await start({
      store: open(),
    });
    const first = await responses.create({ instructions: "Speak French." });
    expect(asked()?.[0]).toEqual({ role: "system", content: "Speak French." });
    const second = await responses.create({
      previous_response_id: first.id,
      input: "And now?",
      instructions: "Speak Dutch.",
    });
    expect(asked()).toEqual([
      { role: "system", content: "Speak Dutch." },
      { role: "user", content: "Hello" },
      { role: "assistant", content: "OK" },
      { role: "user", content: "And now?" },
    ]);
    const third = await responses.create({ previous_response_id: second.id, input: "Then?" });
    expect(JSON.stringify(asked())).not.toContain("Speak");
    expect([first, second, third].map((one) => one["instructions"])).toEqual([
      "Speak French.",
      "Speak Dutch.",
      null,
    ]);
    expect(new Set([first, second, third].map((one) => one.session_id)).size).toBe(1);
    expect(await sessions()).toHaveLength(1);
    const transcript = await gateway.sessions.transcript({
      organizationId: key.organizationId,
      id: first.session_id,
    });
    expect(JSON.stringify(transcript)).not.toContain("Speak");
    const recorded = await Promise.all(
      (await steps()).map(async ({ id }) => store.steps.contents(key.organizationId, id)),
    );
    expect(
      recorded.map((one) => one?.instructions && Buffer.from(one.instructions).toString()),
    ).toEqual([null, "Speak Dutch.", "Speak French."]);
  });

  it.each(["deleted", "expired", "swept"])(
    "continues a response if all earlier ones are %s",
    async (fate) => {
      const test = await start({ store: open(), retention: { responses: "1h" } });
      const { clock, gateway, responses, asked } = test;
      const first = await responses.create({ input: "One" });
      const second = await responses.create({ input: "Two", previous_response_id: first.id });
      clock.setWall(clock.now() + 1_000);
      const third = await responses.create({ input: "Three", previous_response_id: second.id });
      const expectWhole = async () => {
        await responses.create({ input: "Four", previous_response_id: third.id, store: false });
        const said = asked()?.map(({ content }) => content);
        expect(said).toEqual(["One", "OK", "Two", "OK", "Three", "OK", "Four"]);
      };
      if (fate === "deleted") {
        await responses.remove(second.id);
        await expectWhole();
        await responses.remove(first.id);
      } else clock.setWall(clock.now() + 3_599_000);
      if (fate === "swept") expect(await gateway.sweep()).toBe(2);
      await expectWhole();
      for (const { id } of [first, second])
        expect((await responses.post({ previous_response_id: id })).status).toBe(400);
      expect((await itemsOf(responses.inputItems(third.id))).data).toHaveLength(1);
      expect(await (await responses.get(third.id)).json()).toEqual(third);
    },
  );

  it("keeps the whole conversation of an answer if earlier responses are deleted while it is generated", async () => {
    const { provider, responses, asked } = await start({ store: open() });
    const first = await responses.create({ input: "One" });
    const hold = provider.hold();
    const making = responses.create({ input: "Two", previous_response_id: first.id });
    await hold.reached();
    expect((await responses.remove(first.id)).status).toBe(200);
    hold.release();
    const { id } = await making;
    await responses.create({ input: "Three", previous_response_id: id });
    expect(asked()?.map(({ content }) => content)).toEqual(["One", "OK", "Two", "OK", "Three"]);
  });

  it("continues the Session of the response, however many responses came after it", async () => {
    const { responses } = await start({ store: open() });
    const first = await responses.create({ input: "Long ago" });
    for (let other = 0; other < 100; other++)
      await responses.create({ input: `Something else ${other}`, store: false });
    const next = await responses.create({ input: "Well?", previous_response_id: first.id });
    expect(next.session_id).toBe(first.session_id);
    const input = [{ role: "user", content: "Long ago" }, ...first.output];
    const unnamed = await responses.create({
      input: [...input, { role: "user", content: "Well?" }],
    });
    expect(unnamed.session_id).not.toBe(first.session_id);
  });

  it("branches: two continuations of one response each have their own history", async () => {
    const { responses, asked } = await start({ store: open() });
    const root = await responses.create({ input: "Root" });
    const left = await responses.create({ input: "Left", previous_response_id: root.id });
    const right = await responses.create({ input: "Right", previous_response_id: root.id });
    expect(right.session_id).not.toBe(left.session_id);
    await responses.create({ input: "Further", previous_response_id: left.id });
    expect(asked()?.map(({ content }) => content)).toEqual(["Root", "OK", "Left", "OK", "Further"]);
    await responses.create({ input: "Further", previous_response_id: right.id });
    expect(asked()?.[2]?.content).toBe("Right");
  });

  it("and item_reference form the same conversation as the items themselves", async () => {
    const { provider, responses, asked } = await start({ store: open() });
    provider.reply({
      reasoning: "Hm.",
      text: "Looking.",
      toolCalls: [{ name: "look", arguments: "{}", id: "call_a" }],
    });
    const first = await responses.create({ input: "Look" });
    const output = { type: "function_call_output", call_id: "call_a", output: "A cat." };
    const references = first.output.map(({ id }) => ({ type: "item_reference", id }));
    const ways = [
      [{ role: "user", content: "Look" }, ...first.output, output],
      [{ role: "user", content: "Look" }, ...references, output],
      [{ role: "user", content: "Look" }, ...first.output.map(({ id }) => ({ id })), output],
    ];
    await responses.create({ previous_response_id: first.id, input: [output], store: false });
    const chained = asked();
    for (const input of ways) {
      const answer = await responses.create({ input });
      // The client's own items carry the model's reasoning.
      expect(asked()?.map((message) => ({ ...message, state: undefined }))).toEqual(chained);
      const { data } = await itemsOf(responses.inputItems(answer.id, "?order=asc"));
      expect(data.map(({ type }) => type)).toEqual([
        "message",
        "reasoning",
        "message",
        "function_call",
        "function_call_output",
      ]);
    }
  });
});

function call(id: string, city: string) {
  const called = { name: "get_weather", arguments: JSON.stringify({ city }) };
  return { id, type: "function", function: called };
}
