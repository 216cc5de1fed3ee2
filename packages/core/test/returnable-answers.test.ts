import type { CompletionEvent, Json, Provider, StateFields } from "@tollgate/core/provider";
import { createTestGateway, scriptedProvider, type TestGateway } from "@tollgate/testing";
import { describe, expect, it } from "vitest";

/** A gateway whose provider `odd` answers every call with these batches of events. */
async function answering(...batches: readonly (readonly CompletionEvent[])[]) {
  const asked: Json[] = [];
  const odd: Provider = {
    ...scriptedProvider().at("odd"),
    async *complete({ request }) {
      asked.push(JSON.parse(JSON.stringify(request.messages)));
      yield [{ type: "request-sent", host: "odd.test", bodySha256: "0".repeat(64) }];
      for (const batch of batches) yield batch;
      yield [{ type: "finish", reason: "stop" }];
    },
  };
  const made = await createTestGateway({ providers: { odd } });
  return { ...made, asked };
}

const question = { role: "user", content: "Hi" };
const said: CompletionEvent = { type: "text-delta", text: "Hello" };
const state = (fields: StateFields): CompletionEvent => ({ type: "state", fields });

function ask(made: TestGateway, path: string, fields: object): Promise<Response> {
  return made.gateway.fetch(
    new Request(`http://in-process${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${made.key.secret}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "odd/vendor/model", ...fields }),
    }),
  );
}

const chat = (made: TestGateway, fields: object) => ask(made, "/v1/chat/completions", fields);
const respond = (made: TestGateway, fields: object) => ask(made, "/v1/responses", fields);

/** The statuses when each endpoint gets its own answer back, and the message that a chat client received. */
async function turn(made: TestGateway) {
  const answer = await chat(made, { messages: [question] });
  const { message } = JSON.parse(await answer.text()).choices[0];
  const again = await chat(made, { messages: [question, message, question] });
  const include = ["reasoning.encrypted_content"];
  const { output } = JSON.parse(
    await (await respond(made, { input: [question], include, store: false })).text(),
  );
  const next = await respond(made, { input: [question, ...output, question], store: false });
  return { message, statuses: [again.status, next.status] };
}

async function reasonOf({ gateway, key: { organizationId } }: TestGateway) {
  const { data } = await gateway.steps.list({ organizationId });
  return data[0]?.reason;
}

const nested = (levels: number): Json => JSON.parse(`${"[".repeat(levels)}1${"]".repeat(levels)}`);
const members = (count: number): Json =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 1]));

describe("the state and details that a provider sends with its text", () => {
  it.each([
    ["__proto__", '{"a":{"__proto__":{"b":1},"c":1}}', { a: { c: 1 } }],
    ["constructor", '{"constructor":1,"c":1}', { c: 1 }],
    ["prototype", '{"list":[{"prototype":1}]}', { list: [{}] }],
    ["a number that loses digits", '{"id":12345678901234567890,"f":1e30}', { id: null, f: 1e30 }],
    ["more members than an object may have", JSON.stringify(members(300)), members(256)],
  ])("can be sent back by the client: %s", async (_what, text, left) => {
    const given: Json = JSON.parse(text);
    const made = await answering([
      { type: "shown", name: "annotations", entries: [given] },
      state({ provider_specific_fields: given, reasoning_details: [given] }),
      state(JSON.parse('{"__proto__":{"a":1},"constructor":[1]}')),
      { type: "logprobs", logprobs: given },
      said,
    ]);
    const { message, statuses } = await turn(made);
    expect(statuses).toEqual([200, 200]);
    expect(message).toMatchObject({ provider_specific_fields: left, reasoning_details: [left] });
  });

  it("make the answer fail if they nest deeper than a client may send back", async () => {
    const deep = (levels: number) =>
      answering([state({ extra_content: { a: nested(levels) } }), said]);
    expect((await turn(await deep(31))).statuses).toEqual([200, 200]);
    const deeper = await deep(32);
    expect((await chat(deeper, { messages: [question] })).status).toBe(502);
    expect(await reasonOf(deeper)).toBe("too_deep");
    const shown = await answering([
      { type: "shown", name: "annotations", entries: [nested(90_000)] },
    ]);
    expect((await chat(shown, { messages: [question] })).status).toBe(502);
    expect(await reasonOf(shown)).toBe("too_deep");
  });

  it("make the answer fail if they can't be written", async () => {
    const broken = Object.defineProperty({}, "toJSON", {
      value() {
        throw new Error("a secret of the provider");
      },
    });
    const made = await answering([said], [{ type: "logprobs", logprobs: broken }], [said]);
    const answer = await chat(made, { messages: [question], stream: true });
    const text = await answer.text();
    expect(text.match(/Hello/g)).toHaveLength(1);
    expect(text).toContain('"code":"upstream_error"');
    expect(text).not.toContain("secret");
    expect(text).not.toContain('"finish_reason":"stop"');
    expect(await reasonOf(made)).toBe("provider_fault");
  });

  it("make the answer fail if they are larger than a client may send back", async () => {
    const details = (count: number, text: string, index = 0) =>
      state({
        reasoning_details: Array.from({ length: count }, (_, at) => ({ index: index + at, text })),
      });
    const signed = (count: number, name: "data" | "text" = "data") =>
      state({ reasoning_details: [{ [name]: Array.from({ length: count }, () => "x") }] });
    const inCall = (count: number) =>
      state({ extra_content: { any: Array.from({ length: count }, () => "x") } });
    const most = [
      [signed(2_048), signed(2_048)],
      [signed(20_000, "text")],
      [details(21_000, "")],
      Array.from({ length: 13 }, (_, part) => details(1, "x".repeat(200_000), part)),
    ];
    const more = [
      [signed(4_097)],
      [signed(4_096), inCall(1)],
      [inCall(4_097)],
      [details(22_000, "")],
      Array.from({ length: 23 }, (_, part) => details(1_000, "", part * 1_000)),
      Array.from({ length: 14 }, (_, part) => details(1, "x".repeat(200_000), part)),
    ];
    for (const events of most)
      expect((await turn(await answering(events, [said]))).statuses).toEqual([200, 200]);
    for (const events of more) {
      const made = await answering(events, [said]);
      expect((await chat(made, { messages: [question] })).status).toBe(502);
      expect(await reasonOf(made)).toBe("too_much_state");
    }
  });

  it("are measured with their pieces joined", async () => {
    const piece = { type: "reasoning.text", index: 0, format: "f" };
    const made = await answering(
      Array.from({ length: 20_000 }, () => state({ reasoning_details: [{ ...piece, text: "a" }] })),
      [said],
    );
    const { message, statuses } = await turn(made);
    expect(statuses).toEqual([200, 200]);
    expect(message.reasoning_details).toEqual([{ ...piece, text: "a".repeat(20_000) }]);
  });
});

describe("halves of a surrogate pair in provider state", () => {
  const piece = (text: string, index = 0): StateFields => ({
    reasoning_details: [{ type: "reasoning.text", index, text }],
  });
  const textsOf = async (...pieces: readonly StateFields[]) => {
    const made = await answering(pieces.map(state), [said]);
    const { message } = await turn(made);
    return message.reasoning_details.map(({ text }: { readonly text: string }) => text);
  };

  it("are joined if two pieces of one text split them (H15)", async () => {
    expect(await textsOf(piece("a\ud83d"), piece("\ude00b\ud83d"), piece("\ude01"))).toEqual([
      "a😀b😁",
    ]);
    expect(await textsOf(piece("a\ud83d"), piece(""), piece("\ude00"))).toEqual(["a😀"]);
  });

  it("are replaced if no other half follows", async () => {
    expect(await textsOf(piece("a\ud83d"), piece("\ude00", 1))).toEqual(["a\uFFFD", "\uFFFD"]);
    expect(await textsOf(piece("a\ud83d"))).toEqual(["a\uFFFD"]);
    const signature: StateFields = {
      reasoning_details: [{ type: "reasoning.text", index: 0, signature: "s" }],
    };
    expect(await textsOf(piece("a\ud83d"), signature)).toEqual(["a\uFFFD"]);
  });

  it("are joined in a stream, too", async () => {
    const made = await answering([state(piece("a\ud83d")), state(piece("\ude00"))], [said]);
    const text = await (await chat(made, { messages: [question], stream: true })).text();
    expect(text).toContain('"text":"😀"');
    expect(text).not.toMatch(/\\ud83d|\uFFFD/);
  });
});
