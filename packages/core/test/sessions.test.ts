import { createTestGateway, type TestGateway } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { stores } from "./stores.ts";
import { type ChatCompletion, completionOf, failureOf } from "./wire.ts";
import { written } from "./written.ts";

const user = (content: unknown) => ({ role: "user", content });
const assistant = (content: unknown) => ({ role: "assistant", content });
const call = {
  id: "call_1",
  type: "function",
  function: { name: "f", arguments: '{"a":1,"b":2}' },
};
const tool = { role: "tool", tool_call_id: "call_1", content: "result" };

type Messages = readonly unknown[];

async function ask(
  { gateway, chat }: Pick<TestGateway, "gateway" | "chat">,
  messages: Messages,
  fields: Record<string, unknown> = {},
): Promise<ChatCompletion> {
  return completionOf(gateway.fetch(chat({ messages, ...fields })));
}

function idsOf({ session_id, turn_id }: ChatCompletion): readonly string[] {
  return [session_id, turn_id];
}

async function sessionsOf({ gateway, key }: TestGateway) {
  return (await gateway.sessions.list({ organizationId: key.organizationId })).data;
}

async function stepNumbers({ gateway, key }: TestGateway): Promise<readonly (number | null)[]> {
  const { data } = await gateway.steps.list({ organizationId: key.organizationId });
  return data.map(({ stepNumber }) => stepNumber).reverse();
}

describe.each(stores)("session assignment on %s (section 3)", (_, open) => {
  it("continues the named Session if the caller owns it, with or without its whole history (rule 1)", async () => {
    const test = await createTestGateway({ store: open() });
    const first = await ask(test, [user("a")]);
    const next = await ask(test, [user("a"), assistant("OK"), user("b")], {
      session_id: first.session_id,
    });
    expect(next.session_id).toBe(first.session_id);
    expect(next.turn_id).not.toBe(first.turn_id);
    expect(await sessionsOf(test)).toMatchObject([{ length: 4, branchedFromSessionId: null }]);
  });

  it("without ids, continues the Session with the longest matching history, or creates one (rule 2)", async () => {
    const test = await createTestGateway({ store: open() });
    const first = await ask(test, [user("a")]);
    const next = await ask(test, [user("a"), assistant("OK"), user("b")]);
    const other = await ask(test, [user("a"), assistant("other"), user("b")]);
    const deep = await ask(test, [
      user("a"),
      assistant("OK"),
      user("b"),
      assistant("OK"),
      user("c"),
    ]);
    expect([next.session_id, deep.session_id]).toEqual([first.session_id, first.session_id]);
    expect(other.session_id).not.toBe(first.session_id);
  });

  it("never branches without ids (rule 3)", async () => {
    const test = await createTestGateway({ store: open() });
    const first = await ask(test, [user("a")]);
    await ask(test, [user("a"), assistant("OK"), user("b")]);
    const rewound = await ask(test, [user("a"), assistant("OK"), user("other")]);
    expect(rewound.session_id).not.toBe(first.session_id);
    const sessions = await sessionsOf(test);
    expect(sessions.map(({ branchedFromSessionId }) => branchedFromSessionId)).toEqual([
      null,
      null,
    ]);
    expect(sessions.map(({ length }) => length).sort()).toEqual([4, 4]);
  });

  it("of another organization, or unknown, can't be read", async () => {
    const test = await createTestGateway({ store: open() });
    const { session_id: id } = await ask(test, [user("a")]);
    const { organizationId } = test.key;
    const { sessions } = test.gateway;
    expect((await sessions.get({ organizationId, id })).id).toBe(id);
    for (const reference of [
      { organizationId: "globex", id },
      { organizationId, id: "unknown" },
    ])
      for (const reading of [sessions.get(reference), sessions.transcript(reference)])
        await expect(reading).rejects.toMatchObject({ code: "session_not_found" });
  });

  it("records the origin when a named Session is rewound (rule 4)", async () => {
    const test = await createTestGateway({ store: open() });
    const { session_id } = await ask(test, [user("a")]);
    await ask(test, [user("a"), assistant("OK"), user("b")], { session_id });
    const rewound = await ask(test, [user("a"), assistant("OK"), user("c")], { session_id });
    expect(rewound.session_id).not.toBe(session_id);
    const { organizationId } = test.key;
    const reference = { organizationId, id: rewound.session_id };
    expect(await test.gateway.sessions.get(reference)).toMatchObject({
      branchedFromSessionId: session_id,
      commonLength: 2,
      length: 4,
    });
    const transcript = await test.gateway.sessions.transcript(reference);
    expect(transcript.flatMap(({ messages }) => messages)).toMatchObject([
      user("a"),
      assistant("OK"),
      user("c"),
      assistant("OK"),
    ]);
  });

  it("keeps a client on its branch if it still sends the old id", async () => {
    const test = await createTestGateway({ store: open() });
    const { session_id } = await ask(test, [user("a")]);
    await ask(test, [user("a"), assistant("OK"), user("b")], { session_id });
    const branch = [user("a"), assistant("OK"), user("c")];
    const rewound = await ask(test, branch, { session_id });
    const onward = await ask(test, [...branch, assistant("OK"), user("d")], { session_id });
    expect(onward.session_id).toBe(rewound.session_id);
    expect(await sessionsOf(test)).toHaveLength(2);
  });

  it("ignores a duplicated assistant row (rule 5)", async () => {
    const test = await createTestGateway({ store: open() });
    const first = await ask(test, [user("a")]);
    const twice = await ask(test, [user("a"), assistant("OK"), assistant("OK"), user("b")]);
    const once = await ask(test, [
      user("a"),
      assistant("OK"),
      user("b"),
      assistant("OK"),
      user("c"),
    ]);
    expect([twice.session_id, once.session_id]).toEqual([first.session_id, first.session_id]);
  });

  it.each([
    ['""', { content: "" }],
    ["null", { content: null }],
    ["omitted", {}],
  ])(
    "treats a tool-call message with the content %s as the same message (rule 6)",
    async (_, content) => {
      const test = await createTestGateway({ store: open() });
      const { arguments: args, name } = call.function;
      test.provider.reply({ toolCalls: [{ id: call.id, name, arguments: args }] });
      const first = await ask(test, [user("a")]);
      const followUp = [user("a"), { role: "assistant", ...content, tool_calls: [call] }, tool];
      const next = await ask(test, followUp);
      expect(idsOf(next)).toEqual(idsOf(first));
      expect(await stepNumbers(test)).toEqual([0, 1]);
    },
  );

  it("continues a tool loop if the follow-up arrives before the settlement", async () => {
    const store = open();
    const [asked, late] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let isLate = true;
    const test = await createTestGateway({
      store: {
        ...store,
        async settleStep(settlement) {
          if (isLate) {
            isLate = false;
            asked.resolve();
            await late.promise;
          }
          return store.settleStep(settlement);
        },
      },
    });
    const { arguments: args, name } = call.function;
    test.provider.reply({ toolCalls: [{ id: call.id, name, arguments: args }] });
    const answer = await test.gateway.fetch(test.chat({ messages: [user("a")], stream: true }));
    const reading = answer.text();
    await asked.promise;
    const followUp = [user("a"), { role: "assistant", tool_calls: [call] }, tool];
    const next = await ask(test, followUp);
    late.resolve();
    expect(await reading).toContain(
      `"session_id":"${next.session_id}","turn_id":"${next.turn_id}"`,
    );
    const { organizationId } = test.key;
    const transcript = await test.gateway.sessions.transcript({
      organizationId,
      id: next.session_id,
    });
    expect(transcript.flatMap(({ messages }) => messages)).toMatchObject([
      user("a"),
      { role: "assistant", tool_calls: [call] },
      tool,
      assistant("OK"),
    ]);
  });

  it("creates two Sessions for two equal first requests in flight, and one for a retry (SE8)", async () => {
    const test = await createTestGateway({ store: open() });
    const hold = test.provider.hold();
    const both = [ask(test, [user("a")]), ask(test, [user("a")])];
    await hold.reached(2);
    hold.release();
    const [one, two] = await Promise.all(both);
    expect(one?.session_id).not.toBe(two?.session_id);

    test.provider.reply({ text: "cut", finishReason: null });
    const failed = await test.gateway.fetch(test.chat({ messages: [user("x")] }));
    expect(failed.status).toBe(502);
    const retry = await ask(test, [user("x")]);
    const sessions = await sessionsOf(test);
    expect(sessions).toHaveLength(3);
    expect(sessions[0]).toMatchObject({ id: retry.session_id, length: 2 });
  });

  it("considers the key's 100 most recently updated Sessions, and no other key's", async () => {
    const test = await createTestGateway({ store: open() });
    const other = await test.createKey();
    const firsts: string[] = [];
    for (let at = 0; at < 101; at++) firsts.push((await ask(test, [user(`${at}`)])).session_id);
    const followUp = (at: number) => ask(test, [user(`${at}`), assistant("OK"), user("more")]);
    expect((await followUp(1)).session_id).toBe(firsts[1]);
    expect((await followUp(0)).session_id).not.toBe(firsts[0]);
    const foreign = await ask({ ...test, chat: other.chat }, [
      user("50"),
      assistant("OK"),
      user("b"),
    ]);
    expect(firsts).not.toContain(foreign.session_id);
  });

  it("refuses all ids that don't belong to the caller alike, and creates nothing (SE4, S10)", async () => {
    const test = await createTestGateway({ store: open() });
    const sameUser = await test.createKey();
    const sameOrganization = await test.createKey({ userId: "user-2" });
    const stranger = await test.createKey({ organizationId: "organization-2" });
    const { session_id, turn_id } = await ask(test, [user("a")]);
    const before = await written(test.gateway);
    for (const name of ["session_id", "turn_id"] as const) {
      const mine = { session_id, turn_id }[name];
      const unknown = mine.replace(/.$/, (last) => (last === "f" ? "e" : "f"));
      const answers = await Promise.all(
        [
          ...[sameUser, sameOrganization, stranger].map(({ chat }) => chat({ [name]: mine })),
          test.chat({ [name]: unknown }),
        ].map(async (request) => {
          const answer = await test.gateway.fetch(request);
          return `${answer.status} ${await answer.text()}`;
        }),
      );
      expect(new Set(answers).size).toBe(1);
      expect(answers[0]).toMatch(new RegExp(`^404 .*"param":"${name}"`));
      expect(await failureOf(test.gateway.fetch(test.chat({ [name]: "none" })))).toMatchObject({
        code: "invalid_value",
        param: name,
      });
    }
    expect(await written(test.gateway)).toEqual(before);
  });

  it("reuses the Turn for tool-loop follow-ups, and starts one for a new user message (SE7)", async () => {
    const test = await createTestGateway({ store: open() });
    const first = await ask(test, [user("a")]);
    const loop = [user("a"), { role: "assistant", content: "OK", tool_calls: [] }];
    const second = await ask(test, [...loop, { role: "system", content: "be brief" }]);
    expect(idsOf(second)).toEqual(idsOf(first));
    const third = await ask(
      test,
      [...loop, { role: "system", content: "be brief" }, assistant("OK"), user("b")],
      {
        session_id: first.session_id,
        turn_id: first.turn_id,
      },
    );
    expect(third.session_id).toBe(first.session_id);
    expect(third.turn_id).not.toBe(first.turn_id);
  });

  it("finds the Session of a named Turn if its history matches", async () => {
    const test = await createTestGateway({ store: open() });
    const first = await ask(test, [user("a")]);
    const messages = [user("a"), assistant("OK"), { role: "system", content: "go on" }];
    const next = await ask(test, messages, { turn_id: first.turn_id });
    expect(idsOf(next)).toEqual(idsOf(first));
  });

  it("numbers a step by the assistant messages after the last user message (SE6)", async () => {
    const test = await createTestGateway({ store: open() });
    const histories = [
      [user("a")],
      [user("a"), assistant("b"), user("c")],
      [user("a"), assistant("b"), assistant("b"), assistant("c")],
      [assistant("a"), assistant("b")],
      [{ role: "system", content: "s" }],
    ];
    for (const messages of histories) await ask(test, messages);
    expect(await stepNumbers(test)).toEqual([0, 0, 3, 2, 0]);
  });
});
