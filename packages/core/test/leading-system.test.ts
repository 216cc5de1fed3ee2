import { createTestGateway, type TestGateway } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { z } from "zod";

const ids = z.looseObject({ session_id: z.string(), turn_id: z.string() });
const apart = { sessions: { leadingSystem: "apart" } } as const;

/** The list of messages in the bodies of an endpoint, and its path. */
const endpoints: readonly (readonly [path: string, member: string])[] = [
  ["chat/completions", "messages"],
  ["responses", "input"],
];

async function ask(
  { gateway, key }: TestGateway,
  path: string,
  fields: object,
): Promise<z.infer<typeof ids>> {
  const answer = await gateway.fetch(`http://in-process/v1/${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${key.secret}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "test/tollgate/scripted", ...fields }),
  });
  return ids.parse(await answer.json());
}

/** A conversation of three Turns or more, as an agent sends it. `leading` are the messages before it in each request. */
async function converse(
  test: TestGateway,
  [path, member]: readonly [path: string, member: string],
  leading: (round: number) => readonly object[],
  questions: readonly string[] = ["One", "Two", "Three"],
) {
  const messages: object[] = [];
  const answers: z.infer<typeof ids>[] = [];
  for (const [round, content] of questions.entries()) {
    messages.push({ role: "user", content });
    answers.push(await ask(test, path, { [member]: [...leading(round), ...messages] }));
    messages.push({ role: "assistant", content: "OK" });
  }
  return {
    sessions: new Set(answers.map((answer) => answer.session_id)).size,
    turns: new Set(answers.map((answer) => answer.turn_id)).size,
  };
}

/** How many messages the transcripts of all Sessions hold. */
async function storedMessages({ gateway, key }: TestGateway): Promise<number> {
  const { organizationId } = key;
  let stored = 0;
  for await (const { id } of gateway.sessions.list({ organizationId }))
    for (const { messages } of await gateway.sessions.transcript({ organizationId, id }))
      stored += messages?.length ?? 0;
  return stored;
}

const changing = (round: number) => [
  { role: "system", content: "Be brief." },
  { role: "developer", content: [{ type: "text", text: `It is ${round} o'clock.` }] },
];
const changingItems = (round: number) => [
  { role: "system", content: "Be brief." },
  { role: "developer", content: `It is ${round} o'clock.` },
];

describe.each(endpoints)("leading system messages of %s that change", (path, member) => {
  const leading = path === "responses" ? changingItems : changing;

  it("begin a Session each time by default", async () => {
    const test = await createTestGateway();
    expect(await converse(test, [path, member], leading)).toEqual({ sessions: 3, turns: 3 });
  });

  it('belong to their Steps with leadingSystem: "apart"', async () => {
    const test = await createTestGateway(apart);
    expect(await converse(test, [path, member], leading)).toEqual({ sessions: 1, turns: 3 });
    const roles = test.provider.calls.at(-1)?.request.messages.map(({ role }) => role);
    expect(roles).toEqual([
      ...["system", "developer", "user", "assistant", "user", "assistant", "user"],
    ]);
    const { organizationId } = test.key;
    const [last] = (await test.gateway.steps.list({ organizationId })).data;
    const content = await test.gateway.steps.content({ organizationId, id: last?.id ?? "" });
    expect(content).toMatchObject({
      instructions: "Be brief.\n\nIt is 2 o'clock.",
      input: [{ role: "user", content: "Three" }],
    });
  });

  it("make 20 Sessions or one of a conversation that grows to 41 messages", async () => {
    const questions = Array.from({ length: 20 }, (_, at) => `Question ${at}`);
    const clock = (round: number) => [{ role: "system", content: `It is ${round} o'clock.` }];
    const each = await createTestGateway();
    expect(await converse(each, [path, member], clock, questions)).toEqual({
      sessions: 20,
      turns: 20,
    });
    // Request n holds a system message, n questions and n - 1 answers, and gets an answer: 3 + 5 + … + 41.
    expect(await storedMessages(each)).toBe(440);
    const one = await createTestGateway(apart);
    expect(await converse(one, [path, member], clock, questions)).toEqual({
      sessions: 1,
      turns: 20,
    });
    // Its 20 questions and 20 answers, once each.
    expect(await storedMessages(one)).toBe(40);
  });

  it.each([
    [{}, "apart", 1],
    [apart, "history", 3],
    [apart, null, 1],
  ] as const)(
    "are where the key says, or else the gateway: %j, %s",
    async (options, place, sessions) => {
      const test = await createTestGateway({ ...options, key: { leadingSystem: place } });
      expect(await converse(test, [path, member], leading)).toEqual({ sessions, turns: 3 });
      const { organizationId, id } = test.key;
      const other = sessions === 1 ? "history" : "apart";
      await test.gateway.keys.update({ organizationId, id, leadingSystem: other });
      const changed = await converse(test, [path, member], leading);
      expect(changed.sessions).toBe(sessions === 1 ? 3 : 1);
    },
  );

  it("don't follow the key's former choice in a conversation that is remembered", async () => {
    const test = await createTestGateway({ key: { leadingSystem: "apart" } });
    const { organizationId, id } = test.key;
    const long = { role: "system", content: "x".repeat(9_000) };
    const [one, ok, two] = [
      { role: "user", content: "One" },
      { role: "assistant", content: "OK" },
      { role: "user", content: "Two" },
    ];
    await ask(test, path, { [member]: [long, one] });
    await test.gateway.keys.update({ organizationId, id, leadingSystem: "history" });
    const second = await ask(test, path, { [member]: [long, one, ok, two] });
    // In other bytes, it isn't remembered.
    const written = [{ content: long.content, role: "system" }, one, ok, two, ok, two];
    const third = await ask(test, path, { [member]: written });
    expect(third.session_id).toBe(second.session_id);
  });

  it("are as apart from a conversation that is remembered", async () => {
    const long = { role: "system", content: "x".repeat(9_000) };
    const steady = { role: "developer", content: "Be kind." };
    for (const limits of [{}, { conversationCacheBytes: 1 }]) {
      const test = await createTestGateway({ ...apart, limits });
      const found = await converse(test, [path, member], (round) =>
        round === 2 ? [long, steady, steady] : [long, steady],
      );
      expect(found).toEqual({ sessions: 1, turns: 3 });
      const alone = { [member]: [long, steady] };
      const { session_id } = await ask(test, path, alone);
      const grown = { [member]: [long, steady, { role: "user", content: "One" }] };
      expect((await ask(test, path, grown)).session_id).not.toBe(session_id);
    }
  });
});

it("a response that is continued keeps its leading system messages apart", async () => {
  const test = await createTestGateway(apart);
  const first = await ask(test, "responses", {
    input: [...changingItems(0), { role: "user", content: "One" }],
  });
  const next = await ask(test, "responses", {
    previous_response_id: first["id"],
    instructions: "Be kind.",
    input: "Two",
  });
  expect(next.session_id).toBe(first.session_id);
  expect(next.turn_id).not.toBe(first.turn_id);
});
