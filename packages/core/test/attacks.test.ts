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
import { endpoints } from "./endpoints.ts";
import { joined, messagesOf } from "./messages-calls.ts";
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
const send = (
  { gateway, key }: TestGateway,
  path: string,
  body: string | Uint8Array<ArrayBuffer>,
) =>
  gateway.fetch(`http://in-process/v1/${path}`, {
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
        const message = { max_tokens: 9, messages: [{ role: "user", content: canary }] };
        const asked = { model: `test/a/${canary}`, ...message, metadata: { user_id: canary } };
        for (const path of ["messages", "messages/count_tokens"])
          await calls.ask("POST", path, JSON.stringify(asked));
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
  it.each(endpoints)(
    "of $name is never used for an equal request, of the same key or of another (S12)",
    async ({ request }) => {
      const { gateway, provider, key, createKey } = await createTestGateway();
      const other = await createKey({ organizationId: "organization-2", userId: "user-2" });
      const asked = [key, key, other.key, other.key];
      for (const [number, { secret }] of asked.entries()) {
        const said = 7_654_320 + number;
        provider.reply({ text: `answer ${said}`, embeddings: [[said]] });
        const answer = await gateway.fetch(request(secret));
        expect(await answer.text()).toContain(`${said}`);
      }
      expect(provider.calls).toHaveLength(asked.length);
    },
  );

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
        provider.reply(scripted, { times: 3 });
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
        // Throws if an event or its text isn't as the Messages API has it.
        const message = joined(await messagesOf(gateway, key.secret).stream());
        expect(message.content).toMatchObject([
          { type: "text", text: text.join("") },
          { type: "tool_use", name, input: { [json]: json } },
        ]);
      }),
      { numRuns: 40 },
    );
  });
});

const user = (content: unknown) => ({ role: "user", content });
const many = <Value>(count: number, value: (at: number) => Value): readonly Value[] =>
  Array.from({ length: count }, (_, at) => value(at));
const nested = (depth: number): unknown => JSON.parse(`${"[".repeat(depth)}${"]".repeat(depth)}`);
const keys = (count: number) => Object.fromEntries(many(count, (at) => [`key${at}`, "x"]));

/** How an endpoint says what the bodies below say. */
interface Family {
  readonly path: string;
  /** The list of messages in its bodies. */
  readonly list: string;
  /** One entry of the list, and how many are allowed. */
  readonly entry: (content: string) => unknown;
  readonly maxEntries: number;
  /** The fields that every body needs. */
  readonly fields: object;
  /** Null for an endpoint without tools. */
  readonly tool: ((schema: unknown, at?: number) => object) | null;
  /** A field whose value is an integer, and the largest one. */
  readonly integer: readonly [name: string, largest: number];
  /** A field whose value is a number. */
  readonly number: string;
  /** Whether its metadata has keys of the client's choice. */
  readonly hasMetadata: boolean;
}

const conversation = { entry: user, maxEntries: 2_000, number: "temperature" };
const largest = 9_007_199_254_740_991;

const families: readonly Family[] = [
  {
    ...conversation,
    path: "chat/completions",
    list: "messages",
    fields: {},
    tool: (parameters, at = 0) => ({
      type: "function",
      function: { name: `tool_${at}`, parameters },
    }),
    integer: ["seed", largest],
    hasMetadata: true,
  },
  {
    ...conversation,
    path: "responses",
    list: "input",
    fields: {},
    tool: (parameters, at = 0) => ({
      type: "function",
      name: `tool_${at}`,
      parameters,
      strict: false,
    }),
    integer: ["max_output_tokens", largest],
    hasMetadata: true,
  },
  {
    ...conversation,
    path: "messages",
    list: "messages",
    fields: { max_tokens: 64 },
    tool: (input_schema, at = 0) => ({ name: `tool_${at}`, input_schema }),
    integer: ["top_k", largest],
    hasMetadata: false,
  },
  {
    path: "embeddings",
    list: "input",
    entry: (content) => content,
    maxEntries: 2_048,
    fields: {},
    tool: null,
    integer: ["dimensions", 65_536],
    number: "dimensions",
    hasMetadata: false,
  },
];

type BadBody = readonly [
  name: string,
  rejected: string | Uint8Array<ArrayBuffer>,
  accepted: string,
];

/** Bodies that must cost nothing, and the largest ones of their kind that are accepted. */
function bodiesOf({
  list,
  entry,
  maxEntries,
  fields,
  tool,
  integer: [integer, largestInteger],
  number,
  hasMetadata,
}: Family): Readonly<Record<string, readonly BadBody[]>> {
  const bodyOf = (more: object): string =>
    JSON.stringify({
      model: "test/tollgate/scripted",
      [list]: [entry("Hello")],
      ...fields,
      ...more,
    });
  const good = bodyOf({});
  const schema = (depth: number) =>
    bodyOf({ tools: [tool?.({ type: "object", x: nested(depth) })] });
  const tools = (count: number) =>
    bodyOf({ tools: many(count, (at) => tool?.({ type: "object" }, at)) });
  const entries = (count: number) => bodyOf({ [list]: many(count, () => entry("x")) });
  const beginning = (text: string) => good.replace("{", `{${text},`);
  const bytes = (text: string) => Buffer.from(good.replace("Hello", text), "latin1");
  return {
    "nests too deeply (S30)": [
      ["a message", good.replace('"Hello"', `${"[".repeat(5_000)}${"]".repeat(5_000)}`), good],
      ...(tool ? [["a schema", schema(33), schema(30)] as const] : []),
      ["nothing but brackets", "[".repeat(100_000), good],
      ["an unknown field", bodyOf({ x: nested(64) }), good],
    ],
    "has too many values (S31)": [
      [list, entries(maxEntries + 1), entries(maxEntries)],
      ...(tool ? [["tools", tools(129), tools(128)] as const] : []),
      ["members", bodyOf(keys(257)), good],
      ...(hasMetadata
        ? [["metadata", bodyOf({ metadata: keys(17) }), bodyOf({ metadata: keys(16) })] as const]
        : []),
      ["empty objects", bodyOf({ [list]: many(1_000_000, () => ({})) }), good],
    ],
    "means something else to another parser (S32)": [
      ["a member twice", beginning('"model":"other/a/b"'), good],
      ["a member twice, once escaped", beginning('"mo\\u0064el":"other/a/b"'), good],
      ["__proto__", beginning('"__proto__":{"isAdmin":true}'), good],
      ["constructor", bodyOf({ constructor: { prototype: { isAdmin: true } } }), good],
      ["__proto__ in metadata", beginning('"metadata":{"__proto__":"x"}'), good],
      [
        "an integer beyond 2^53",
        beginning(`"${integer}":9007199254740993`),
        bodyOf({ [integer]: largestInteger }),
      ],
      ["a number beyond all bounds", beginning(`"${number}":1e400`), bodyOf({ [number]: 1 })],
    ],
    "is not well-formed Unicode (S33)": [
      [
        "half a surrogate pair",
        good.replace("Hello", "\\ud800"),
        good.replace("Hello", "\\ud83d\\ude00"),
      ],
      ["half a pair in a name", beginning('"metadata":{"\\udc00":"x"}'), good],
      ["bytes that are not UTF-8", bytes("\u00ff"), good],
      ["an overlong slash", bytes("\u00c0\u00af"), good],
    ],
  };
}

const everyBody = families.flatMap((family) =>
  Object.entries(bodiesOf(family)).flatMap(([fault, rows]) =>
    rows.map((row) => [family.path, fault, ...row] as const),
  ),
);

describe("a body for", () => {
  it.each(everyBody)("%s that %s is rejected before anything happens: %s", async (...of) => {
    const [path, , , rejected, accepted] = of;
    const test = await createTestGateway();
    const pristine = Reflect.ownKeys(Object.prototype);
    const before = await written(test.gateway);
    const answer = await send(test, path, rejected);
    expect([400, 413]).toContain(answer.status);
    expect(answer.headers.get("x-should-retry")).toBe("false");
    await answer.text();
    expect(test.provider.calls).toEqual([]);
    expect(await written(test.gateway)).toEqual(before);
    expect(Reflect.ownKeys(Object.prototype)).toEqual(pristine);
    expect((await send(test, path, accepted)).status).toBe(200);
  });
});
