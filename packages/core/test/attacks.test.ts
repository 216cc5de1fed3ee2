import { hash } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import { crc32 } from "node:zlib";
import { memoryStore } from "@tollgate/store-memory";
import {
  chatWith,
  createTestGateway,
  type ScriptedAnswer,
  type TestGateway,
} from "@tollgate/testing";
import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { responsesOf } from "./responses-calls.ts";
import { stores } from "./stores.ts";
import { written } from "./written.ts";

const sqlite = stores.filter(([name]) => name === "sqliteStore").map(([, open]) => open);
const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** A secret with these random characters and the checksum that fits them, so that it is looked up. */
function wellFormed(random: string): string {
  let checksum = "";
  for (let rest = crc32(random); checksum.length < 6; rest = Math.floor(rest / 62))
    checksum = `${alphabet[rest % 62]}${checksum}`;
  return `tg_${random}${checksum}`;
}

const models = (secret: string): Request =>
  new Request("http://in-process/v1/models", { headers: { authorization: `Bearer ${secret}` } });

/** Posts a body as it is. */
const send = ({ gateway, key }: TestGateway, body: string | Uint8Array<ArrayBuffer>) =>
  gateway.fetch("http://in-process/v1/chat/completions", {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key.secret}` },
    body,
  });

describe("a caller's text", () => {
  it.each(sqlite.map((open) => [open]))(
    "never becomes part of a statement of SQL (S1)",
    async (open) => {
      const texts = new Set<string>();
      const { prepare, exec } = DatabaseSync.prototype;
      vi.spyOn(DatabaseSync.prototype, "prepare").mockImplementation(function (
        this: DatabaseSync,
        text,
        ...rest
      ) {
        texts.add(text);
        return prepare.call(this, text, ...rest);
      });
      vi.spyOn(DatabaseSync.prototype, "exec").mockImplementation(function (
        this: DatabaseSync,
        text,
      ) {
        texts.add(text);
        exec.call(this, text);
      });
      const test = await createTestGateway({ store: open(), maintenance: false });
      const { gateway, key, chat } = test;
      const calls = responsesOf(gateway, key.secret);
      const everywhere = async (canary: string): Promise<void> => {
        const random = canary
          .replaceAll(/[^0-9A-Za-z]/g, "0")
          .padEnd(43, "0")
          .slice(0, 43);
        for (const secret of [canary, `tg_${canary}`, wellFormed(random)])
          expect((await gateway.fetch(models(secret.replaceAll(/[^!-~]/g, "_")))).status).toBe(401);
        await gateway.fetch(chat({ messages: [{ role: "user", content: canary }], user: canary }));
        await gateway.fetch(chat({ metadata: { [canary]: canary } }));
        await gateway.fetch(chat({ session_id: canary }));
        await gateway.fetch(chat({ model: `test/a/${canary}` }));
        await calls.post({ previous_response_id: canary });
        await calls.get(encodeURIComponent(canary));
        const organizationId = canary;
        await gateway.steps.list({ organizationId, user: canary });
      };
      for (let round = 0; round < 8; round++) await everywhere(`plain${round}`);
      const before = [...texts];
      expect(before.length).toBeGreaterThan(10);
      for (const canary of [
        "'--canary",
        "' OR 1=1 --canary",
        '";canary;',
        "\\';canary",
        "%canary_?1:x@x$x",
        "/*canary*/",
      ])
        await everywhere(canary);
      expect([...texts].filter((text) => /canary|plain/.test(text))).toEqual([]);
      expect([...texts].slice(before.length)).toEqual([]);
      await gateway.close();
    },
  );
});

describe("an API key", () => {
  it("is recognized by all of its characters: keys that share all but one are unknown (S2)", async () => {
    const { gateway, key } = await createTestGateway();
    const random = key.secret.slice(3, 46);
    expect(wellFormed(random)).toBe(key.secret);
    // The list of models reads the key each time. A chat uses the record that was read last.
    const statuses = (secret: string) =>
      Promise.all(
        [models(secret), chatWith(secret)()].map(
          async (request) => (await gateway.fetch(request)).status,
        ),
      );
    for (let at = 0; at < random.length; at++) {
      expect(await statuses(key.secret)).toEqual([200, 200]);
      const other = random[at] === "x" ? "y" : "x";
      const near = wellFormed(`${random.slice(0, at)}${other}${random.slice(at + 1)}`);
      expect(await statuses(near), `character ${at}`).toEqual([401, 401]);
      expect(await statuses(near), `character ${at}, again`).toEqual([401, 401]);
    }
  });
});

describe("the look-up of an API key", () => {
  it("gets a digest only, and none for a text that is not a key (S27)", async () => {
    const store = memoryStore();
    const lookUps = vi.spyOn(store.keys, "findByDigest");
    const { gateway, key } = await createTestGateway({ store });
    const random = key.secret.slice(3, 46);
    const near = wellFormed(`${random.slice(0, -1)}${random.endsWith("x") ? "y" : "x"}`);
    for (const secret of [key.secret, near, `${random}x`, key.secret.slice(0, -1)])
      await gateway.fetch(models(secret));
    expect(lookUps.mock.calls.map(([digest]) => Buffer.from(digest))).toEqual([
      hash("sha256", key.secret, "buffer"),
      hash("sha256", near, "buffer"),
    ]);
  });
});

/** The events of a stream, which ends with a blank line. */
function blocksOf(stream: string): string[] {
  const blocks = stream.split("\n\n");
  expect(blocks.pop()).toBe("");
  return blocks;
}

describe("an answer", () => {
  it("is never used for an equal request, of the same key or of another (S12)", async () => {
    const { gateway, provider, chat, createKey } = await createTestGateway();
    const other = await createKey({ organizationId: "organization-2", userId: "user-2" });
    const asked = [chat, chat, other.chat, other.chat];
    for (const [number, ask] of asked.entries()) {
      provider.reply(`answer ${number}`);
      const answer = await gateway.fetch(ask({ temperature: 0, seed: 1 }));
      expect(await answer.text()).toContain(`answer ${number}`);
    }
    expect(provider.calls).toHaveLength(asked.length);
  });

  it("can create no line, field or event of its own in a stream (S26)", async () => {
    const pieces = [
      "\r",
      "\n",
      "\r\n",
      "\n\n",
      "data: [DONE]",
      "event: response.completed",
      "id: 1",
      ": ",
      "retry: 1",
      "\u2028",
      "\u0085",
      "\0",
      "\ufeff",
      '"}',
      "x",
    ];
    const text = fc
      .array(fc.constantFrom(...pieces), { minLength: 1, maxLength: 6 })
      .map((parts) => parts.join(""));
    const answer = fc.record({
      text: fc.array(text, { minLength: 1, maxLength: 3 }),
      name: text,
      json: text,
    });
    await fc.assert(
      fc.asyncProperty(answer, async ({ text, name, json }) => {
        const { gateway, provider, chat, key } = await createTestGateway();
        const tool = { id: `call_${name}`, name, arguments: JSON.stringify({ [json]: json }) };
        const scripted: ScriptedAnswer = { text, toolCalls: [tool] };
        provider.reply(scripted, { times: 2 });
        const chunks = blocksOf(await (await gateway.fetch(chat({ stream: true }))).text());
        expect(chunks.pop()).toBe("data: [DONE]");
        let said = "";
        for (const chunk of chunks)
          said +=
            JSON.parse(/^data: ([^\r\n]+)$/.exec(chunk)?.[1] ?? "").choices[0]?.delta.content ?? "";
        expect(said).toBe(text.join(""));
        const stream = await responsesOf(gateway, key.secret).post({ stream: true, input: json });
        const types = blocksOf(await stream.text()).map((event) => {
          const [, type, data = ""] = /^event: ([a-z_.]+)\ndata: ([^\r\n]+)$/.exec(event) ?? [];
          expect(JSON.parse(data).type).toBe(type);
          return type;
        });
        expect(types.indexOf("response.completed")).toBe(types.length - 1);
      }),
      { numRuns: 40 },
    );
  });
});

const user = (content: unknown) => ({ role: "user", content });
const chatBody = (fields: object): string =>
  JSON.stringify({ model: "test/tollgate/scripted", messages: [user("Hello")], ...fields });
const many = <Value>(count: number, value: (at: number) => Value): readonly Value[] =>
  Array.from({ length: count }, (_, at) => value(at));
const nested = (depth: number): unknown => JSON.parse(`${"[".repeat(depth)}${"]".repeat(depth)}`);
const tool = (parameters: unknown, at = 0) => ({
  type: "function",
  function: { name: `tool_${at}`, parameters },
});
const keys = (count: number) => Object.fromEntries(many(count, (at) => [`key${at}`, "x"]));

/** Bodies that must cost nothing, and the largest ones of their kind that are accepted. */
const bodies: Readonly<
  Record<
    string,
    readonly (readonly [
      name: string,
      rejected: string | Uint8Array<ArrayBuffer>,
      accepted: string,
    ])[]
  >
> = {
  "nests too deeply (S30)": [
    [
      "a message",
      chatBody({}).replace('"Hello"', `${"[".repeat(5_000)}${"]".repeat(5_000)}`),
      chatBody({}),
    ],
    [
      "a schema",
      chatBody({ tools: [tool({ type: "object", x: nested(33) })] }),
      chatBody({ tools: [tool({ type: "object", x: nested(30) })] }),
    ],
    ["nothing but brackets", "[".repeat(100_000), chatBody({})],
    ["an unknown field", chatBody({ x: nested(64) }), chatBody({})],
  ],
  "has too many values (S31)": [
    [
      "messages",
      chatBody({ messages: many(2_001, () => user("x")) }),
      chatBody({ messages: many(2_000, () => user("x")) }),
    ],
    [
      "tools",
      chatBody({ tools: many(129, (at) => tool({}, at)) }),
      chatBody({ tools: many(128, (at) => tool({}, at)) }),
    ],
    ["members", chatBody(keys(257)), chatBody({})],
    ["metadata", chatBody({ metadata: keys(17) }), chatBody({ metadata: keys(16) })],
    ["empty objects", chatBody({ messages: many(1_000_000, () => ({})) }), chatBody({})],
  ],
  "means something else to another parser (S32)": [
    ["a member twice", chatBody({}).replace("{", '{"model":"other/a/b",'), chatBody({})],
    [
      "a member twice, once escaped",
      chatBody({}).replace("{", '{"mo\\u0064el":"other/a/b",'),
      chatBody({}),
    ],
    ["__proto__", chatBody({}).replace("{", '{"__proto__":{"isAdmin":true},'), chatBody({})],
    ["constructor", chatBody({ constructor: { prototype: { isAdmin: true } } }), chatBody({})],
    [
      "__proto__ in metadata",
      chatBody({}).replace("{", '{"metadata":{"__proto__":"x"},'),
      chatBody({}),
    ],
    [
      "an integer beyond 2^53",
      chatBody({}).replace("{", '{"seed":9007199254740993,'),
      chatBody({ seed: 9_007_199_254_740_991 }),
    ],
    [
      "a number beyond all bounds",
      chatBody({}).replace("{", '{"temperature":1e400,'),
      chatBody({ temperature: 1 }),
    ],
  ],
  "is not well-formed Unicode (S33)": [
    [
      "half a surrogate pair",
      chatBody({}).replace("Hello", "\\ud800"),
      chatBody({}).replace("Hello", "\\ud83d\\ude00"),
    ],
    [
      "half a pair in a name",
      chatBody({}).replace("{", '{"metadata":{"\\udc00":"x"},'),
      chatBody({}),
    ],
    [
      "bytes that are not UTF-8",
      Buffer.from(chatBody({}).replace("Hello", "\u00ff"), "latin1"),
      chatBody({}),
    ],
    [
      "an overlong slash",
      Buffer.from(chatBody({}).replace("Hello", "\u00c0\u00af"), "latin1"),
      chatBody({}),
    ],
  ],
};

describe.each(Object.entries(bodies))("a body that %s", (_, rows) => {
  it.each(rows)("is rejected before anything happens: %s", async (_name, rejected, accepted) => {
    const test = await createTestGateway();
    const pristine = Reflect.ownKeys(Object.prototype);
    const before = await written(test.gateway);
    const answer = await send(test, rejected);
    expect([400, 413]).toContain(answer.status);
    expect(answer.headers.get("x-should-retry")).toBe("false");
    await answer.text();
    expect(test.provider.calls).toEqual([]);
    expect(await written(test.gateway)).toEqual(before);
    expect(Reflect.ownKeys(Object.prototype)).toEqual(pristine);
    expect((await send(test, accepted)).status).toBe(200);
  });
});
