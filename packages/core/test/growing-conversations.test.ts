import { createTestGateway, type TestGateway } from "@tollgate/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

/** A text long enough for its conversation to be remembered. */
const opening = { role: "system", content: "x".repeat(9_000) };
const question = { role: "user", content: "Hello" };

const image = { type: "image_url", image_url: { url: "https://a.example/b" } };
const call = { id: "call_1", type: "function", function: { name: "f", arguments: '{"a":1}' } };

/** Messages and items in every shape that matters, some of which are wrong. */
const messages = fc.constantFrom<object>(
  { role: "user", content: "é\u{1F600}" },
  { role: "user", content: [{ type: "text", text: "a" }, image] },
  { role: "user", content: "", unknown_field: 1 },
  { role: "assistant", content: "OK" },
  { role: "assistant", content: "OK" },
  { role: "assistant", content: null, tool_calls: [call], reasoning_content: "so" },
  { role: "tool", tool_call_id: "call_1", content: "[1,2]" },
  { role: "user", content: 7 },
  { role: "nobody", content: "a" },
);
const items = fc.constantFrom<object>(
  { role: "user", content: "é\u{1F600}" },
  { role: "user", content: [{ type: "input_text", text: "a" }] },
  { type: "message", role: "assistant", content: [{ type: "output_text", text: "OK" }] },
  { type: "reasoning", summary: [{ type: "summary_text", text: "so" }] },
  { type: "function_call", call_id: "call_1", name: "f", arguments: "{}" },
  { type: "function_call_output", call_id: "call_1", output: "1" },
  { type: "item_reference", id: "msg_nothing" },
  { type: "function_call_output", call_id: "call_1" },
);

const groups = fc.constantFrom<object>(
  { role: "user", content: "é\u{1F600}" },
  { role: "user", content: [{ type: "text", text: "a", unknown_field: 1 }] },
  { role: "assistant", content: "OK" },
  {
    role: "assistant",
    content: [
      { type: "thinking", thinking: "so", signature: "" },
      { type: "tool_use", id: "call_1", name: "f", input: { a: 1 } },
    ],
  },
  {
    role: "user",
    content: [
      { type: "tool_result", tool_use_id: "call_1", content: "1", is_error: true },
      { type: "text", text: "Be brief." },
    ],
  },
  { role: "system", content: "It is late." },
  { role: "user", content: [{ type: "document" }] },
  { role: "user", content: [] },
);

function tool(name: string): object {
  const schema = { type: "object", properties: { messages: { type: "array", items: {} } } };
  return { type: "function", name, function: { name, parameters: schema }, parameters: schema };
}

function customTool({ name, parameters }: { readonly name: string; readonly parameters: object }) {
  return { name, input_schema: parameters };
}

/** The members that an endpoint has and the others don't. */
function own(path: string, fields: object): object {
  if (path !== "messages") return fields;
  const { instructions, tools, ...rest } = Object(fields);
  return {
    ...rest,
    ...(instructions === undefined ? {} : { system: instructions }),
    ...(tools === undefined ? {} : { tools: tools.map(customTool) }),
  };
}

function hex(character: string): string {
  return character.charCodeAt(0).toString(16);
}

/** Limits that growing conversations reach exactly, or exceed. */
const limits = fc.record({
  values: fc.oneof(fc.constant(131_072), fc.integer({ min: 20, max: 90 })),
  messages: fc.oneof(fc.constant(2_000), fc.integer({ min: 3, max: 8 })),
  bodyBytes: fc.oneof(fc.constant(4_194_304), fc.integer({ min: 9_200, max: 10_500 })),
});

function mostly<Value>(usual: Value, ...others: readonly Value[]): fc.Arbitrary<Value> {
  return fc.oneof({ weight: 9, arbitrary: fc.constant(usual) }, fc.constantFrom(...others));
}

/** One request: how much of the history it repeats, what it adds, and how its body is written. */
const send = fc.record({
  drop: fc.constantFrom(0, 0, 0, 0, 1, 2),
  edit: fc.constantFrom(false, false, false, true),
  key: fc.constantFrom(0, 0, 0, 1),
  indent: fc.constantFrom(0, 0, 1),
  goesOn: mostly(false, true),
  before: mostly<object>(
    {},
    { temperature: 1 },
    { instructions: "Be brief." },
    { metadata: { messages: "[", input: "]", "\\": '"' } },
    { tools: [tool("first")] },
  ),
  after: mostly<object>(
    {},
    { stream: false },
    { store: false, tools: [] },
    { user: 1 },
    { instructions: "Be long." },
    { tools: Array.from({ length: 12 }, (_, at) => tool(`f${at}`)) },
    { messages: null },
  ),
  damage: mostly<(body: string) => string>(
    (body) => body,
    (body) => body.replace(/\]([^\]]*)$/, ",]$1"),
    (body) => body.slice(0, -1),
    (body) => `${body.slice(0, -1)},"messages":[],"input":[]}`,
    (body) => `${body.slice(0, -1)},"mess\\u0061ges":[],"inp\\u0075t":[]}`,
    (body) => body.replace(/"(messages|input)":/, '"m\\u006f":1,$&'),
    (body) => body.replace(/"(mess|inp)([au])/, (_, start, end) => `"${start}\\u00${hex(end)}`),
    (body) => body.replace('"Hello"', '"Hell\\u006f"'),
    (body) => body.replace(/\]([^\]]*)$/, ' , {"role":"user","content":"a","content":"b"}]$1'),
    (body) => body.replace(/\]([^\]]*)$/, `,${"[".repeat(70)}${"]".repeat(70)}]$1`),
    (body) => body.replace(/\]([^\]]*)$/, " \t\n]$1"),
    (body) => body.replace(/\}([^}]*)$/, "}}$1"),
    (body) => `\uFEFF${body}`,
    (body) => body.replace("Hello", "Hell\\ud800"),
  ),
});

const endpoints = [
  ["chat/completions", "messages", messages],
  ["responses", "input", items],
  ["messages", "messages", groups],
] as const;

function post(
  { gateway }: TestGateway,
  key: { readonly secret: string } | undefined,
  path: string,
  body: string,
): Promise<Response> {
  const headers = { "content-type": "application/json", authorization: `Bearer ${key?.secret}` };
  return gateway.fetch(`http://test/v1/${path}`, { method: "POST", headers, body });
}

/** Everything that shows how a request was understood. */
async function outcome(test: TestGateway, response: Response) {
  const records = await Promise.all(
    ["organization-1", "organization-2"].map(async (organizationId) => {
      const { data } = await test.gateway.steps.list({ organizationId }, { limit: 1 });
      const [step] = data;
      return step && [step, await test.gateway.steps.content({ organizationId, id: step.id })];
    }),
  );
  return {
    status: response.status,
    body: await response.json(),
    records,
    request: test.provider.calls.at(-1)?.request,
    calls: test.provider.calls.length,
  };
}

describe.each(endpoints)("a growing conversation of %s", (path, member, item) => {
  it("is understood as if each request were the first", { timeout: 120_000 }, async () => {
    let continued = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(send, fc.array(item, { maxLength: 3 })), { minLength: 3, maxLength: 8 }),
        limits,
        async (sends, bounds) => {
          const remembering = await createTestGateway({ limits: bounds });
          const forgetful = await createTestGateway({
            limits: { ...bounds, conversationCacheBytes: 1 },
          });
          const tests = await Promise.all(
            [remembering, forgetful].map(async (test) => ({
              test,
              keys: [test.key, (await test.createKey({ organizationId: "organization-2" })).key],
            })),
          );
          let history: readonly object[] = [opening, question];
          const another = { model: "test/tollgate/scripted", input: "Something else" };
          const [previous] = await Promise.all(
            tests.map(async ({ test, keys }) => {
              const response = await post(test, keys[0], "responses", JSON.stringify(another));
              return Reflect.get(Object(await response.json()), "id");
            }),
          );
          for (const [sent, added] of sends) {
            const { drop, edit, key, indent, goesOn, before, after, damage } = sent;
            const kept = history.slice(0, Math.max(2, history.length - drop));
            const edited = edit
              ? [opening, { ...question, content: "Bye" }, ...kept.slice(2)]
              : kept;
            const next = [...edited, ...added];
            const fields = {
              model: "test/tollgate/scripted",
              ...(path === "messages" ? { max_tokens: 64 } : {}),
              ...own(path, before),
              [member]: next,
              ...own(path, after),
              ...(goesOn && member === "input" ? { previous_response_id: previous } : {}),
            };
            const body = damage(JSON.stringify(fields, null, indent));
            const [found, expected] = await Promise.all(
              tests.map(async ({ test, keys }) => {
                return outcome(test, await post(test, keys[key], path, body));
              }),
            );
            expect(found).toEqual(expected);
            if (found?.status === 200) history = next;
          }
          for (const { continues = [], request } of remembering.provider.calls) {
            continued += continues.length;
            expect(request.messages.slice(0, continues.length)).toEqual(continues);
          }
          expect(forgetful.provider.calls.every((each) => each.continues === undefined)).toBe(true);
        },
      ),
      { numRuns: 100 },
    );
    // Otherwise nothing was remembered, and the test compared nothing.
    expect(continued).toBeGreaterThan(0);
  });
});
