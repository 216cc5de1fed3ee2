import type { CompletionEvent, Provider } from "@tollgate/core/provider";
import { createTestGateway, scriptedProvider, type TestGateway } from "@tollgate/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";

interface Call {
  readonly id: string;
  readonly name: string;
  /** The arguments in pieces. */
  readonly pieces: readonly string[];
}

const called = (text: string, over: Partial<Call> = {}): Call => ({
  id: "call_1",
  name: "look",
  pieces: [text],
  ...over,
});

/** A gateway whose provider answers every request with these tool calls, which arrive piece by piece. */
async function calling(calls: readonly Call[]): Promise<TestGateway> {
  const odd: Provider = {
    ...scriptedProvider().at("odd"),
    async *complete() {
      yield [{ type: "request-sent", host: "odd.test", bodySha256: "0".repeat(64) }];
      yield calls.map(({ id, name }, index) => ({ type: "tool-call-started", index, id, name }));
      const rounds = Math.max(...calls.map(({ pieces }) => pieces.length));
      for (let round = 0; round < rounds; round++)
        yield calls.flatMap(({ pieces: { [round]: piece } }, index): readonly CompletionEvent[] =>
          piece === undefined ? [] : [{ type: "tool-call-delta", index, arguments: piece }],
        );
      yield [{ type: "finish", reason: "tool_calls" }];
    },
  };
  return createTestGateway({ providers: { odd } });
}

const chatCall = z.looseObject({
  id: z.string(),
  function: z.looseObject({ name: z.string(), arguments: z.string() }),
});
const chatMessage = z.looseObject({ tool_calls: z.array(chatCall) });
const chatBody = z.object({ choices: z.tuple([z.object({ message: chatMessage })]) });
const chatDelta = z.object({
  index: z.number(),
  id: z.string().default(""),
  function: z.object({ name: z.string().default(""), arguments: z.string() }),
});
const chatChunk = z.object({
  choices: z.tuple([z.object({ delta: z.object({ tool_calls: z.array(chatDelta).default([]) }) })]),
});
const item = z.looseObject({ type: z.string(), call_id: z.string(), arguments: z.string() });
const responsesBody = z.object({ output: z.array(item) });
const responsesEnd = z.object({ type: z.literal("response.completed"), response: responsesBody });
const block = z.looseObject({
  type: z.string(),
  id: z.string(),
  input: z.record(z.string(), z.unknown()),
});
const messagesBody = z.object({ content: z.array(block) });
const messagesEvent = z.object({
  index: z.number().default(-1),
  content_block: block.optional(),
  delta: z.object({ partial_json: z.string().default("") }).default({ partial_json: "" }),
});

/** The same message as an SDK with parsed calls sends it back. */
const withParsedCalls = (message: z.infer<typeof chatMessage>): object => ({
  ...message,
  tool_calls: message.tool_calls.map((call) => ({
    ...call,
    function: { ...call.function, parsed_arguments: parsed(call.function.arguments) },
  })),
});

const withParsed = (one: z.infer<typeof item>): object => ({
  ...one,
  parsed_arguments: parsed(one.arguments),
});

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

const question = { role: "user", content: "Hi" };

/** How clients of an endpoint read an answer and send it back with the results of its calls. */
interface Client {
  readonly path: string;
  first(): object;
  readPlain(body: unknown): readonly object[];
  readStream(events: readonly unknown[]): readonly object[];
  next(said: readonly object[]): object;
}

const idsIn = (said: readonly object[]) =>
  said.flatMap((message) => chatMessage.parse(message).tool_calls.map(({ id }) => id));

const chat: Client = {
  path: "chat/completions",
  first: () => ({ messages: [question] }),
  readPlain: (body) => chatBody.parse(body).choices.map(({ message }) => withParsedCalls(message)),
  readStream(events) {
    const calls: z.infer<typeof chatCall>[] = [];
    for (const event of events)
      for (const { index, id, function: more } of chatChunk.parse(event).choices[0].delta
        .tool_calls) {
        const begun = { id: "", type: "function", function: { name: "", arguments: "" } };
        const call = calls[index] ?? begun;
        calls[index] = call;
        call.id += id;
        call.function.name += more.name;
        call.function.arguments += more.arguments;
      }
    return [withParsedCalls({ role: "assistant", content: null, tool_calls: calls })];
  },
  next: (said) => ({
    messages: [
      question,
      ...said,
      ...idsIn(said).map((id) => ({ role: "tool", tool_call_id: id, content: "ok" })),
    ],
  }),
};

const responses: Client = {
  path: "responses",
  first: () => ({ input: [question], store: false }),
  readPlain: (body) => responsesBody.parse(body).output.map(withParsed),
  readStream: (events) => responsesEnd.parse(events.at(-1)).response.output.map(withParsed),
  next: (said) => ({
    input: [
      question,
      ...said,
      ...said.map((one) => ({
        type: "function_call_output",
        call_id: item.parse(one).call_id,
        output: "ok",
      })),
    ],
    store: false,
  }),
};

const messages: Client = {
  path: "messages",
  first: () => ({ messages: [question], max_tokens: 100 }),
  readPlain: (body) => messagesBody.parse(body).content,
  readStream(events) {
    const blocks: z.infer<typeof block>[] = [];
    const texts: string[] = [];
    for (const event of events) {
      const { index, content_block, delta } = messagesEvent.parse(event);
      if (content_block) blocks[index] = content_block;
      if (index >= 0) texts[index] = (texts[index] ?? "") + delta.partial_json;
    }
    return blocks.map((started, index) => ({ ...started, input: inputOf(texts[index] ?? "") }));
  },
  next: (said) => ({
    messages: [
      question,
      { role: "assistant", content: said },
      {
        role: "user",
        content: said.map((one) => ({ type: "tool_result", tool_use_id: block.parse(one).id })),
      },
    ],
    max_tokens: 100,
  }),
};

/** The arguments as clients read them. They send an empty object for malformed ones. */
function inputOf(text: string): unknown {
  if (text === "") return {};
  try {
    return JSON.parse(text);
  } catch {
    expect(text).toMatch(/^\s*\{/);
    return {};
  }
}

const clients = { chat, responses, messages };
const ways = Object.values(clients).flatMap((client) =>
  [false, true].map((stream) => ({ client, stream })),
);

function ask({ gateway, key }: TestGateway, path: string, fields: object): Promise<Response> {
  return gateway.fetch(`http://in-process/v1/${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${key.secret}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "odd/vendor/model", ...fields }),
  });
}

/** The outcome is `returned` if the next request with the answer succeeds, and `failed` if the answer itself fails. */
async function loop(
  made: TestGateway,
  { client, stream }: (typeof ways)[number],
): Promise<{ readonly outcome: string; readonly said: readonly object[] }> {
  const answer = await ask(made, client.path, { ...client.first(), stream });
  const text = await answer.text();
  const isFailed = /"type":"(?:response\.failed|error)"|"code":"upstream_error"/.test(text);
  if (isFailed) return { outcome: "failed", said: [] };
  if (answer.status !== 200) return { outcome: text, said: [] };
  const data = [...text.matchAll(/^data: (\{.*)$/gm)].map(([, json = ""]) => JSON.parse(json));
  const said = stream ? client.readStream(data) : client.readPlain(JSON.parse(text));
  const next = await ask(made, client.path, client.next(said));
  return { outcome: next.status === 200 ? "returned" : await next.text(), said };
}

async function outcomesOf(calls: readonly Call[]): Promise<ReadonlySet<string>> {
  const outcomes = new Set<string>();
  for (const way of ways) {
    const made = await calling(calls);
    outcomes.add((await loop(made, way)).outcome);
    await made.gateway.close();
  }
  return outcomes;
}

const nested = (levels: number): string => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;
const wide = (members: number): string =>
  JSON.stringify(Object.fromEntries(Array.from({ length: members }, (_, at) => [`k${at}`, at])));

const odd = [
  "",
  " \n",
  "null",
  "[1,2]",
  ' "text"',
  "5",
  "12345678901234567890",
  "look at { that",
  '{"a":[1',
  '{"a":1}{"a":1}',
  '{"a":1,"a":2}',
  '{"__proto__":{"constructor":1}}',
  '{"id":12345678901234567890,"far":1e999}',
  '{"a":"\\ud83d","\\ude00":"\\ud83d\\ude00"}',
  '{"a":"\ud83d"}',
  wide(1_000),
  nested(64),
];
const outrageous = [nested(65), `[${"1,".repeat(70_000)}1]`];
const longest = 65_536;

describe("the tool calls of an answer", () => {
  it.each<readonly [string, Call]>([
    ...odd.map((text) => [`arguments ${text.slice(0, 40)}`, called(text)] as const),
    ["arguments of 1.5 MB", called(`{"a":"${"x".repeat(1_500_000)}"}`)],
    ["a long name", called("{}", { name: "n".repeat(longest) })],
    ["a long id", called("{}", { id: "i".repeat(longest) })],
    ["odd words as id and name", called("{}", { id: " \0\ud83d", name: "constructor/ä\n" })],
  ])("can be sent back by every client: %s", async (_what, call) => {
    expect([...(await outcomesOf([called("{}"), call]))]).toEqual(["returned"]);
  });

  it.each([
    ["no id", "invalid_answer", called("{}", { id: "" })],
    ["no name", "invalid_answer", called("{}", { name: "" })],
    ["an outrageous id", "answer_too_large", called("{}", { id: "i".repeat(1_000_000) })],
    ["an outrageous name", "answer_too_large", called("{}", { name: "n".repeat(longest + 1) })],
    ["arguments that nest too deeply", "too_deep", called(nested(65))],
    ["too many values", "too_many_values", called(`[${"1,".repeat(70_000)}1]`)],
  ])("make the answer fail as the provider's fault: %s", async (_what, reason, call) => {
    expect([...(await outcomesOf([called("{}"), call]))]).toEqual(["failed"]);
    const made = await calling([call]);
    await (await ask(made, chat.path, chat.first())).text();
    const { organizationId } = made.key;
    const { data } = await made.gateway.steps.list({ organizationId });
    expect(data[0]?.reason).toBe(reason);
  });

  it("have ids and names that together fit into the next request", async () => {
    const many = (count: number) =>
      Array.from({ length: count }, () => called("{}", { id: "i".repeat(longest) }));
    expect([...(await outcomesOf(many(10)))]).toEqual(["returned"]);
    expect([...(await outcomesOf(many(40)))]).toEqual(["failed"]);
  });

  it("have an object as input in the Messages API, the same in a stream", async () => {
    for (const text of ["[1]", ' "a\\"b\n"', "5", "null", "oh { no", "", "  ", ' {"a":[1]}']) {
      const call = called("", { pieces: [...text] });
      const [plain, streamed] = await Promise.all(
        [false, true].map(async (stream) =>
          loop(await calling([call]), { client: messages, stream }),
        ),
      );
      expect(plain?.outcome).toBe("returned");
      expect(streamed).toEqual(plain);
    }
  });

  it("can be sent back by any client, whatever a provider wrote, unless the answer fails", async () => {
    const label = fc.oneof(
      fc.string({ unit: "binary", minLength: 1, maxLength: 400 }),
      fc.constantFrom("\ud83d", "x".repeat(300), "x".repeat(longest)),
    );
    const text = fc.oneof(
      fc.jsonValue().map((value) => JSON.stringify(value)),
      fc
        .dictionary(fc.string({ unit: "binary" }), fc.jsonValue())
        .map((value) => JSON.stringify(value)),
      fc.json(),
      fc.string({ unit: "binary" }),
      fc.constantFrom(...odd),
    );
    const pieces = fc.tuple(text, fc.array(fc.nat(400), { maxLength: 5 })).map(([whole, cuts]) => {
      const at = [0, ...cuts.toSorted((one, other) => one - other), whole.length];
      return at.slice(1).map((end, before) => whole.slice(at[before], end));
    });
    const call = fc.record({ id: label, name: label, pieces });
    const fault = fc.constantFrom<Partial<Call>>(
      { id: "" },
      { name: "" },
      { id: "x".repeat(longest + 1) },
      ...outrageous.map((whole) => ({ pieces: [whole] })),
    );
    const answer = fc.record({
      calls: fc.array(call, { minLength: 1, maxLength: 3 }),
      fault: fc.option(fault, { freq: 10 }),
      way: fc.constantFrom(...ways),
    });
    await fc.assert(
      fc.asyncProperty(answer, async ({ calls, fault: broken, way }) => {
        const given = broken === null ? calls : [...calls, { ...called("{}"), ...broken }];
        const made = await calling(given);
        const { outcome } = await loop(made, way);
        expect(outcome).toBe(broken === null ? "returned" : "failed");
        await made.gateway.close();
      }),
      { numRuns: 300 },
    );
  });
});
