import { definePolicy, permit } from "@tollgate/core/policy";
import { type Message, ProviderError } from "@tollgate/core/provider";
import type { Store } from "@tollgate/core/store";
import { createTestGateway, type ScriptedCall, scriptedProvider } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { stores } from "./stores.ts";

type Made = Awaited<ReturnType<typeof createTestGateway>>;
type Fields = Readonly<Record<string, unknown>>;

const tools = [{ type: "function", function: { name: "look_up", parameters: { type: "object" } } }];
const question = { role: "user", content: "How warm is Paris?" };
const resultOf = (id: string) => ({ role: "tool", tool_call_id: id, content: "18 degrees" });

/** A provider that refuses a tool loop if the calls of this Turn lack their state. */
interface Fake {
  readonly answer: (round: number) => object;
  readonly stateOf: (message: Extract<Message, { role: "assistant" }>) => unknown;
  readonly wanted: (round: number) => unknown;
}

const call = (round: number, state?: object) => ({
  toolCalls: [{ id: `call_${round}`, name: "look_up", arguments: "{}", ...(state && { state }) }],
});

const fakes: Readonly<Record<string, Fake>> = {
  "reasoning as text": {
    answer: (round) => ({
      reasoning: [`I look`, ` it up, ${round}.`],
      reasoningField: "reasoning_content",
      ...call(round),
    }),
    stateOf: ({ state }) => state?.fields["reasoning_content"],
    wanted: (round) => `I look it up, ${round}.`,
  },
  "a signature on the call": {
    answer: (round) =>
      call(round, { extra_content: { google: { thought_signature: `thought ${round}` } } }),
    stateOf: ({ tool_calls }) => tool_calls?.[0]?.state?.fields["extra_content"],
    wanted: (round) => ({ google: { thought_signature: `thought ${round}` } }),
  },
  "signed thinking": {
    answer: (round) => ({
      state: {
        thinking_blocks: [{ type: "thinking", thinking: "Hm.", signature: `signed ${round}` }],
      },
      ...call(round),
    }),
    stateOf: ({ state }) => state?.fields["thinking_blocks"],
    wanted: (round) => [{ type: "thinking", thinking: "Hm.", signature: `signed ${round}` }],
  },
};

/** Answers two rounds with a call, then with text. Like upstreams, it answers missing state with 400. */
function script({ provider }: Made, fake: Fake): void {
  provider.reply(
    ({ request: { messages } }: ScriptedCall) => {
      const turn = messages.slice(messages.findLastIndex(({ role }) => role === "user") + 1);
      const spoken = turn.filter((message) => message.role === "assistant");
      for (const [at, message] of spoken.entries())
        if (JSON.stringify(fake.stateOf(message)) !== JSON.stringify(fake.wanted(at + 1)))
          throw new ProviderError("The state is missing.", {
            reason: "status_400",
            delivery: "answered",
            status: 400,
          });
      return spoken.length < 2 ? fake.answer(spoken.length + 1) : "18 degrees.";
    },
    { times: Number.POSITIVE_INFINITY },
  );
}

/** The assistant message of an answer, joined from its chunks if streamed. */
async function said(response: Response, stream: boolean): Promise<Fields> {
  const text = await response.text();
  expect(response.status, text).toBe(200);
  if (!stream) return JSON.parse(text).choices[0].message;
  const message: Record<string, unknown> = { role: "assistant", content: "" };
  for (const line of text.split("\n\n")) {
    if (!line.startsWith("data: {")) continue;
    const { tool_calls, ...delta } = JSON.parse(line.slice(6)).choices[0]?.delta ?? {};
    for (const [name, value] of Object.entries(delta))
      message[name] =
        typeof value === "string" && typeof message[name] === "string" && name !== "role"
          ? message[name] + value
          : value;
    if (tool_calls?.[0]?.id) {
      const { index, ...called } = tool_calls[0];
      called.function.arguments = "{}";
      message["tool_calls"] = [called];
    }
  }
  return message;
}

const withoutState = ({ role, content, tool_calls }: Fields): Fields => ({
  role,
  content,
  ...(Array.isArray(tool_calls)
    ? {
        tool_calls: tool_calls.map(({ id, type, function: called }) => ({
          id,
          type,
          function: called,
        })),
      }
    : {}),
});

async function loop(
  made: Made,
  {
    stream = false,
    keep = withoutState,
    chat = made.chat,
    first = [question],
    ...fields
  }: Fields & {
    readonly stream?: boolean;
    readonly keep?: (message: Fields) => Fields;
    readonly chat?: Made["chat"];
    readonly first?: readonly Fields[];
  } = {},
): Promise<readonly Fields[]> {
  const messages = [...first];
  for (let round = 1; round <= 3; round++) {
    const asked = chat({ messages, tools, stream, ...fields });
    const message = await said(await made.gateway.fetch(asked), stream);
    messages.push(keep(message));
    if (round < 3) messages.push(resultOf(`call_${round}`));
  }
  return messages;
}

async function sessionsOf({ gateway, key: { organizationId } }: Made) {
  const { data: sessions } = await gateway.sessions.list({ organizationId });
  const { data: steps } = await gateway.steps.list({ organizationId });
  return {
    sessions: sessions.length,
    turns: new Set(steps.map(({ turnId }) => turnId)).size,
    steps: steps.toReversed().map(({ stepNumber }) => stepNumber),
  };
}

async function opened(store: Store, options: Parameters<typeof createTestGateway>[0] = {}) {
  await store.migrate();
  return createTestGateway({ store, ...options });
}

describe.each(stores)("provider state on %s", (_store, open) => {
  describe.each(Object.entries(fakes))("%s", (_name, fake) => {
    it.each([
      ["plain", false],
      ["streamed", true],
    ])("is restored for %s answers if the client dropped it", async (_form, stream) => {
      const made = await opened(open());
      script(made, fake);
      await loop(made, { stream });
      expect(await sessionsOf(made)).toEqual({ sessions: 1, turns: 1, steps: [0, 1, 2] });
    });

    it.each([
      ["plain", false],
      ["streamed", true],
    ])("is sent back from %s answers that the client kept whole", async (_form, stream) => {
      const made = await opened(open());
      script(made, fake);
      await loop(made, { stream, keep: (message) => message });
      expect(await sessionsOf(made)).toEqual({ sessions: 1, turns: 1, steps: [0, 1, 2] });
    });

    it("is restored if the previous response is continued", async () => {
      const made = await opened(open());
      script(made, fake);
      await responsesLoop(made, (output, id) => ({
        previous_response_id: id,
        input: results(output),
      }));
      expect(await sessionsOf(made)).toEqual({ sessions: 1, turns: 1, steps: [0, 1, 2] });
    });

    it("is restored if a client repeats the items of responses", async () => {
      const made = await opened(open());
      script(made, fake);
      await responsesLoop(made, (output, _id, before) => ({
        input: [
          ...before,
          ...output.filter(({ type }) => type !== "reasoning"),
          ...results(output),
        ],
      }));
      expect(await sessionsOf(made)).toEqual({ sessions: 1, turns: 1, steps: [0, 1, 2] });
    });
  });
});

describe.each(stores)("a client's copy of provider state on %s", (_store, open) => {
  it("is replaced by the record, in earlier turns too", async () => {
    const made = await opened(open());
    const fake = fakes["signed thinking"];
    if (fake === undefined) expect.unreachable("unknown upstream");
    script(made, fake);
    const changed = (message: Fields): Fields => {
      const blocks = message["thinking_blocks"];
      if (!Array.isArray(blocks)) return message;
      return { ...message, thinking_blocks: blocks.map(({ thinking: _, ...block }) => block) };
    };
    const first = await loop(made, { keep: changed });
    await loop(made, { keep: changed, first: [...first, { role: "user", content: "And Oslo?" }] });
    const earlier = made.provider.calls.at(-1)?.request.messages.slice(0, first.length) ?? [];
    const states = earlier.flatMap((message) =>
      message.role === "assistant" && message.tool_calls ? [fake.stateOf(message)] : [],
    );
    expect(states).toEqual([fake.wanted(1), fake.wanted(2)]);
  });
});

const signed = fakes["a signature on the call"] ?? failing();
const texts = fakes["reasoning as text"] ?? failing();
const anything = () => true;

function failing(): never {
  throw new Error("no such fake");
}

/** The assistant messages of the last request upstream. */
const sentTo = ({ provider }: Made) =>
  (provider.calls.at(-1)?.request.messages ?? []).filter((message) => message.role === "assistant");

/** Runs a first round, and returns the client's answer. */
async function firstRound(made: Made, fake: Fake, chat = made.chat): Promise<Fields> {
  made.provider.reply(() => fake.answer(1));
  return said(await made.gateway.fetch(chat({ messages: [question], tools })), false);
}

/** Sends the second round of a loop to a provider that accepts anything. */
async function secondRound(
  made: Made,
  message: Fields,
  { chat = made.chat, first = question, ...fields }: Fields & { chat?: Made["chat"] } = {},
): Promise<void> {
  made.provider.reply("18 degrees.", { when: anything });
  const messages = [first, message, resultOf("call_1")];
  expect((await made.gateway.fetch(chat({ messages, tools, ...fields }))).status).toBe(200);
}

/** The size of the state that was too large to keep, for each tool-calling message of the last Session. */
async function omittedBytesOf({ gateway, key: { organizationId } }: Made) {
  const id = (await gateway.sessions.list({ organizationId })).data[0]?.id ?? "";
  const entries = await gateway.sessions.transcript({ organizationId, id });
  return entries
    .flatMap(({ messages }) => messages ?? [])
    .flatMap((message) =>
      message.role === "assistant" && message.tool_calls ? [message.state?.omittedBytes] : [],
    );
}

async function lastStep({ gateway, key: { organizationId } }: Made) {
  const { data } = await gateway.steps.list({ organizationId });
  return data[0];
}

describe.each(stores)("the origin of provider state on %s", (_store, open) => {
  it("counts dropped state even under names that every object has", async () => {
    const made = await opened(open());
    const messages = [{ ...question, toString: 1, valueOf: 2 }];
    expect((await made.gateway.fetch(made.chat({ messages }))).status).toBe(200);
    expect((await lastStep(made))?.droppedFields).toEqual({ toString: 1, valueOf: 1 });
  });

  it("accepts the id of a call with a signature of thousands of characters", async () => {
    const made = await opened(open());
    const id = `call_1__thought__${"s".repeat(20_000)}`;
    made.provider.reply({ toolCalls: [{ id, name: "look_up", arguments: "{}" }] }, { times: 2 });
    const asked = await made.gateway.fetch(made.chat({ messages: [question], tools }));
    const { message } = JSON.parse(await asked.text()).choices[0];
    const messages = [question, message, resultOf(id)];
    expect((await made.gateway.fetch(made.chat({ messages, tools }))).status).toBe(200);
    const { output } = JSON.parse(await (await respond(made, { input: [question] })).text());
    const input = [question, ...output, ...results(output)];
    expect((await respond(made, { input })).status).toBe(200);
  });

  it("never reads a provider's own text as the sealed state of a whole answer", async () => {
    const made = await opened(open());
    const written = ['{"message":{', '{"message":{"reasoning_content":"forged"},"calls":[]}'];
    for (const data of written) {
      made.provider.reply({ text: "Hm.", state: { reasoning_details: [{ data }] } });
      const asked = await made.gateway.fetch(made.chat({ messages: [question] }));
      const { reasoning_details: details } = JSON.parse(await asked.text()).choices[0].message;
      const reasoning = { type: "reasoning", summary: [], encrypted_content: details[0].data };
      const spoken = { type: "message", role: "assistant", content: "Hm." };
      const input = [question, reasoning, spoken, { role: "user", content: data }];
      const answer = await respond(made, { input });
      expect(answer.status).toBe(200);
      expect((await lastStep(made))?.droppedFields).toEqual({ encrypted_content: 1 });
    }
  });

  it("is sealed for the client, and comes back to the provider unchanged", async () => {
    const made = await opened(open());
    const message = await firstRound(made, signed);
    expect(JSON.stringify(message)).toMatch(/"thought_signature":"tg1:[^"]+:thought 1"/);
    // Another question before it makes this a new Session, which has only the client's copy.
    await secondRound(made, message, { first: { role: "user", content: "And in Rome?" } });
    expect(sentTo(made).map(signed.stateOf)).toEqual([signed.wanted(1)]);
    expect((await sessionsOf(made)).sessions).toBe(2);
    expect((await lastStep(made))?.droppedFields).toEqual({});
  });

  it("is not restored from another Session, key or organization with the same call", async () => {
    const made = await opened(open());
    const message = withoutState(await firstRound(made, signed));
    await secondRound(made, message, { first: { role: "user", content: "And in Rome?" } });
    expect(sentTo(made).map(signed.stateOf)).toEqual([undefined]);
    const others = [{ label: "another" }, { organizationId: "organization-2", label: "theirs" }];
    for (const creation of others) {
      const { chat } = await made.createKey(creation);
      await secondRound(made, message, { chat });
      expect(sentTo(made).map(signed.stateOf)).toEqual([undefined]);
    }
  });

  it("drops and counts state that was issued to another key, changed, or never sealed", async () => {
    const made = await opened(open());
    const message = await firstRound(made, signed);
    const text = JSON.stringify(message);
    const { chat } = await made.createKey({ label: "another" });
    const copies = [
      { copy: text, chat },
      { copy: text.replace("thought 1", "thought 2"), chat: made.chat },
      { copy: text.replace(/tg1:[^"]+:thought/, "thought"), chat: made.chat },
      { copy: text.replace("test%2Ftollgate", "test%2Fother"), chat: made.chat },
    ];
    for (const [at, { copy, chat: from }] of copies.entries()) {
      const first = { role: "user", content: `Question ${at}` };
      await secondRound(made, JSON.parse(copy), { chat: from, first });
      expect(sentTo(made).map(signed.stateOf)).toEqual([undefined]);
      expect((await lastStep(made))?.droppedFields).toEqual({ extra_content: 1 });
    }
  });

  it("isn't sent to another gateway or vendor, or to a fallback", async () => {
    const policy = definePolicy({
      rules: [permit("all", {}, { fallbacks: ["spare/acme/two"] })],
    });
    const made = await opened(open(), { policy, retries: { max: 0 } });
    const message = await firstRound(made, signed);
    for (const model of ["test/acme/one", "spare/tollgate/scripted"]) {
      await secondRound(made, message, { model });
      expect(sentTo(made).map(signed.stateOf)).toEqual([undefined]);
      expect((await lastStep(made))?.droppedFields).toEqual({ extra_content: 1 });
    }
    const first = { role: "user", content: "And in Rome?" };
    made.provider.reply(() => signed.answer(1));
    const asked = await made.gateway.fetch(made.chat({ messages: [first], tools }));
    const again = await said(asked, false);
    made.provider.fail(
      new ProviderError("Down.", { reason: "down", delivery: "answered", status: 503 }),
    );
    await secondRound(made, withoutState(again), { first });
    const [primary, spare] = made.provider.calls.slice(-2);
    expect([primary?.gateway, spare?.gateway]).toEqual(["test", "spare"]);
    const states = [primary, spare].map((sentThere) =>
      sentThere?.request.messages.flatMap((sent) =>
        sent.role === "assistant" ? [signed.stateOf(sent)] : [],
      ),
    );
    expect(states).toEqual([[signed.wanted(1)], [undefined]]);
  });

  it("is not kept if the policy keeps only digests, and the client's copy is sent instead", async () => {
    const policy = definePolicy({ rules: [permit("all", {}, { transcript: "digest" })] });
    const made = await opened(open(), { policy });
    const message = await firstRound(made, signed);
    await secondRound(made, withoutState(message));
    expect(sentTo(made).map(signed.stateOf)).toEqual([undefined]);
    await secondRound(made, message);
    expect(sentTo(made).map(signed.stateOf)).toEqual([signed.wanted(1)]);
  });

  it("is not kept in stored responses if the policy keeps only digests", async () => {
    const policy = definePolicy({ rules: [permit("all", {}, { transcript: "digest" })] });
    const made = await opened(open(), { policy });
    made.provider.reply(() => signed.answer(1));
    made.provider.reply("18 degrees.", { times: 2 });
    await responsesLoop(made, (output, id) => ({
      previous_response_id: id,
      input: output.some(({ type }) => type === "function_call") ? results(output) : "And now?",
    }));
    const states = made.provider.calls[1]?.request.messages.flatMap((message) =>
      message.role === "assistant" ? [signed.stateOf(message)] : [],
    );
    expect(states).toEqual([undefined]);
  });

  it("keeps at most 256 KiB with a message", async () => {
    const thinking = fakes["signed thinking"] ?? failing();
    const large = (bytes: number): Fake => ({
      ...thinking,
      answer: () => ({
        state: { thinking_blocks: [{ thinking: "Hm.", signature: "x".repeat(bytes) }] },
        ...call(1),
      }),
    });
    for (const [bytes, keep, omitted, isSent] of [
      [262_000, withoutState, undefined, true],
      [262_145, withoutState, expect.any(Number), false],
      // Without a record, the state from the client counts.
      [262_145, (message: Fields) => message, expect.any(Number), true],
    ] as const) {
      const made = await opened(open());
      const message = await firstRound(made, large(bytes));
      await secondRound(made, keep(message));
      expect(sentTo(made).map((sent) => thinking.stateOf(sent) !== undefined)).toEqual([isSent]);
      expect(await omittedBytesOf(made)).toEqual([omitted]);
    }
  });

  it("is estimated with the rest of the input", async () => {
    const made = await opened(open());
    const thought_signature = "x".repeat(3_000);
    const long = {
      ...signed,
      answer: () => call(1, { extra_content: { google: { thought_signature } } }),
    };
    await secondRound(made, withoutState(await firstRound(made, long)));
    const { data } = await made.gateway.decisions.list({
      organizationId: made.key.organizationId,
    });
    const [second, first] = data.map(({ facts }) => facts.estimatedInputTokens);
    expect((second ?? 0) - (first ?? 0)).toBeGreaterThan(1_000);
  });

  it("accepts plain reasoning without a record only if the model wants it", async () => {
    const made = await opened(open(), { gateways: ["deep"] });
    const message = { ...withoutState(await firstRound(made, texts)), reasoning_content: "Mine." };
    const first = { role: "user", content: "And in Rome?" };
    await secondRound(made, message, { first });
    expect(sentTo(made).map(texts.stateOf)).toEqual([undefined]);
    expect((await lastStep(made))?.droppedFields).toEqual({ reasoning_content: 1 });
    await secondRound(made, message, { first, model: "deep/deepseek/chat" });
    expect(sentTo(made).map(texts.stateOf)).toEqual(["Mine."]);
  });

  it("is read again if another Session is the one to continue", async () => {
    const store = open();
    const made = await opened(store);
    const message = withoutState(await firstRound(made, signed));
    const { find } = store.sessions;
    let asked = 0;
    Object.assign(store.sessions, {
      find: (lookup: Parameters<typeof find>[0]) =>
        asked++ === 0 ? Promise.resolve(null) : find(lookup),
    });
    await secondRound(made, message);
    expect(asked).toBe(2);
    expect(sentTo(made).map(signed.stateOf)).toEqual([signed.wanted(1)]);
  });

  it("is read only from the first message whose state is needed, if the Session has that", async () => {
    const store = open();
    const made = await opened(store);
    const message = withoutState(await firstRound(made, signed));
    const { transcript } = store.sessions;
    const from: (number | undefined)[] = [];
    Object.assign(store.sessions, {
      transcript: (...words: Parameters<typeof transcript>) => {
        from.push(words[2]);
        return transcript(...words);
      },
    });
    await secondRound(made, message);
    expect(from).toEqual([1]);
    // The Session has nothing but the question in common with another call.
    const other = JSON.parse(JSON.stringify(message).replace("{}", '{\\"at\\":1}'));
    await secondRound(made, other);
    expect(from).toEqual([1]);
  });

  it("is left out silently of a stored response's earlier turns if the model needs only the last", async () => {
    const made = await opened(open());
    made.provider.reply({ text: "Hm.", state: { thinking_blocks: [{ signature: "s" }] } });
    const { id } = JSON.parse(await (await respond(made, { input: [question] })).text());
    const answer = await respond(made, { previous_response_id: id, input: "And in Rome?" });
    expect(answer.status).toBe(200);
    expect(sentTo(made).map(({ state }) => state)).toEqual([undefined]);
    expect((await lastStep(made))?.droppedFields).toEqual({});
  });

  it("reads nothing for a provider that needs no state back", async () => {
    const store = open();
    const stateless = scriptedProvider({
      stateNeeds: () => ({ restore: "none", reasoningText: "own", cacheBreakpoints: false }),
    });
    const made = await opened(store, { providers: { stateless: stateless.at("stateless") } });
    const message = withoutState(await firstRound(made, signed));
    let asked = 0;
    const { find } = store.sessions;
    Object.assign(store.sessions, {
      find: (lookup: Parameters<typeof find>[0]) => {
        asked++;
        return find(lookup);
      },
    });
    const fields = { model: "stateless/tollgate/scripted", tools };
    const messages = [question, message, resultOf("call_1")];
    stateless.reply("18 degrees.");
    const answer = await made.gateway.fetch(made.chat({ messages, ...fields }));
    expect([answer.status, asked, stateless.calls.length]).toEqual([200, 0, 1]);
  });

  it("reads nothing for a request without a tool loop", async () => {
    const store = open();
    const made = await opened(store);
    let asked = 0;
    Object.assign(store.sessions, {
      find: () => {
        asked++;
        return Promise.resolve(null);
      },
    });
    const answered = { role: "assistant", content: "18 degrees." };
    const messages = [question, answered, { role: "user", content: "Thanks" }];
    expect((await made.gateway.fetch(made.chat({ messages }))).status).toBe(200);
    expect(asked).toBe(0);
  });

  it("is sent in reasoning items if a client asks for encrypted content", async () => {
    const made = await opened(open());
    script(made, signed);
    // A changed call starts a new Session, so only the state in the items is left.
    await responsesLoop(
      made,
      (output, _id, before) => ({ input: [...before, ...output, ...results(output)] }),
      { include: ["reasoning.encrypted_content"], store: false, session_id: null },
      { renamed: true },
    );
    expect((await lastStep(made))?.droppedFields).toEqual({});
  });
});

describe.each(stores)("a response whose input lacked its state on %s", (_store, open) => {
  it("is continued from the record", async () => {
    const made = await opened(open());
    const fake = fakes["reasoning as text"];
    if (fake === undefined) expect.unreachable("unknown upstream");
    script(made, fake);
    let isChained = false;
    await responsesLoop(made, (output, id, before) => {
      if (isChained) return { previous_response_id: id, input: results(output) };
      isChained = before.length > 1;
      const spoken = output.filter(({ type }) => type !== "reasoning");
      return isChained
        ? { previous_response_id: id, input: results(output) }
        : { input: [...before, ...spoken, ...results(output)] };
    });
    expect(await sessionsOf(made)).toEqual({ sessions: 1, turns: 1, steps: [0, 1, 2] });
  });
});

type Item = Fields & { readonly type: string; readonly call_id?: string };

const results = (output: readonly Item[]) =>
  output.flatMap(({ type, call_id }) =>
    type === "function_call" ? [{ type: "function_call_output", call_id, output: "18" }] : [],
  );

function respond(made: Made, fields: Fields): Promise<Response> {
  return made.gateway.fetch(
    new Request("http://in-process/v1/responses", {
      method: "POST",
      headers: { authorization: `Bearer ${made.key.secret}`, "content-type": "application/json" },
      body: JSON.stringify({
        model: "test/tollgate/scripted",
        tools: [{ type: "function", name: "look_up", parameters: { type: "object" } }],
        ...fields,
      }),
    }),
  );
}

/** A loop over the Responses API. `next` makes each request from the previous answer. */
async function responsesLoop(
  made: Made,
  next: (output: readonly Item[], id: string, before: readonly Item[]) => Fields,
  fields: Fields = {},
  { renamed = false }: { readonly renamed?: boolean } = {},
): Promise<void> {
  let body: Fields = { input: [{ type: "message", ...question }] };
  for (let round = 1; round <= 3; round++) {
    const response = await respond(made, { ...fields, ...body });
    const answer = JSON.parse(await response.text());
    expect(answer.error ?? null).toBeNull();
    const before = Array.isArray(body["input"]) ? body["input"] : [];
    if (renamed) before[0] = { type: "message", role: "user", content: `Again, ${round}` };
    body = next(answer.output, answer.id, before);
  }
}
