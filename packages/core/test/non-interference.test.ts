import type { Gateway } from "@tollgate/core";
import type { Store } from "@tollgate/core/store";
import { createTestGateway, type ScriptedCall, type TestGateway } from "@tollgate/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type EventLog, eventLog } from "./event-log.ts";
import { responsesOf } from "./responses-calls.ts";
import { stores } from "./stores.ts";

/** A tenant's next action. Tenants use the same texts, so that their histories would fit each other's requests. */
const use = fc.record({
  name: fc.constantFrom(
    ...(["chat", "chat", "stream", "begin a stream", "end a stream", "leave a stream"] as const),
    ...(["message", "stream a message", "count", "key", "embed"] as const),
    ...(["respond", "respond", "continue", "get", "delete", "items", "models"] as const),
    ...(["a stranger's Session", "a stranger's Turn", "a stranger's response"] as const),
    ...(["an unknown key", "an invalid body", "administration"] as const),
  ),
  text: fc.constantFrom("Hello", "More"),
  restart: fc.boolean(),
});
type Use = typeof use extends fc.Arbitrary<infer Value> ? Value : never;

/** Each use, and which of two tenants it belongs to. */
const histories = fc.array(fc.record({ tenant: fc.constantFrom(0, 1), use }), {
  minLength: 10,
  maxLength: 40,
});

const names = ["acme", "other"] as const;
const said = (content: string) => [{ role: "user", content }];
const unknownId = "0190a000-0000-7000-8000-00000000ffff";

/** One tenant: its own conversation, and everything that it has seen. */
function tenantOf(
  { gateway, log }: { readonly gateway: Gateway; readonly log: EventLog },
  organizationId: string,
  secret: string,
) {
  const seen: string[] = [];
  const ids = { session: unknownId, turn: unknownId, response: `resp_${unknownId}` };
  const open: { stepId: string; reader: ReadableStreamDefaultReader<Uint8Array> }[] = [];
  const calls = responsesOf(gateway, secret);
  let messages: object[] = [];

  const note = (name: string, status: number, headers: Headers, text: string): void => {
    ids.session = /"session_id":"([^"]+)"/.exec(text)?.[1] ?? ids.session;
    ids.turn = /"turn_id":"([^"]+)"/.exec(text)?.[1] ?? ids.turn;
    ids.response = /"id":"(resp_[^"]+)"/.exec(text)?.[1] ?? ids.response;
    seen.push(`${name} ${status} ${JSON.stringify([...headers])} ${text}`);
  };
  const see = async (name: string, answer: Promise<Response>): Promise<string> => {
    const { status, headers, ...rest } = await answer.then(async (own) => ({
      status: own.status,
      headers: own.headers,
      text: await own.text(),
    }));
    note(name, status, headers, rest.text);
    return rest.text;
  };
  const asked = (path: string, fields: object): Promise<Response> =>
    calls.ask("POST", path, JSON.stringify({ model: "test/tollgate/scripted", ...fields }));
  const post = (fields: object, key = secret): Promise<Response> =>
    gateway.fetch("http://in-process/v1/chat/completions", {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
      body: JSON.stringify({ model: "test/tollgate/scripted", messages, ...fields }),
    });

  async function chat({ name, text, restart }: Use, fields: object = {}): Promise<void> {
    if (restart) messages = [];
    messages.push({ role: "user", content: text });
    const answer = await see(name, post(fields));
    const content = /"content":"([^"]*)"/.exec(answer)?.[1];
    if (content === undefined) messages.pop();
    else messages.push({ role: "assistant", content });
  }

  async function beginStream(): Promise<void> {
    const answer = await post({ stream: true, messages: [{ role: "user", content: "Begin" }] });
    const reader = answer.body?.getReader();
    const first = await reader?.read();
    note("begin", answer.status, answer.headers, new TextDecoder().decode(first?.value));
    const opened = log.seen.findLast(({ type }) => type === "step.opened");
    if (reader !== undefined && opened?.type === "step.opened")
      open.push({ stepId: opened.stepId, reader });
  }

  /** Returns when the Step has ended: it does so after the reader has left, whenever its records are written. */
  async function leaveStream(): Promise<void> {
    const left = open.shift();
    await left?.reader.cancel();
    if (left !== undefined) await log.settled(left.stepId);
  }

  async function endStream(): Promise<void> {
    const reader = open.shift()?.reader;
    let text = "";
    for (let part = await reader?.read(); part?.value !== undefined; part = await reader?.read())
      text += new TextDecoder().decode(part.value);
    seen.push(`end ${text}`);
  }

  async function administration(): Promise<void> {
    const scope = { organizationId };
    const records = [
      await gateway.keys.list(scope),
      await gateway.steps.list(scope),
      await gateway.sessions.list(scope),
      await gateway.decisions.list(scope),
      await gateway.activity.list(scope),
      organizationId === "acme" ? await gateway.budgets.status({ id: "org" }) : null,
      await gateway.changes.list(scope),
    ];
    seen.push(JSON.stringify(records));
  }

  /** `stranger` is the other tenant, or nobody if this one is alone. */
  async function run(one: Use, stranger: typeof ids | undefined): Promise<void> {
    const { name, text } = one;
    const own = { session_id: unknownId, turn_id: unknownId };
    if (name === "chat" || name === "stream") return chat(one, { stream: name === "stream" });
    if (name === "begin a stream") return beginStream();
    if (name === "end a stream") return endStream();
    if (name === "leave a stream") return leaveStream();
    if (name === "administration") return administration();
    const answers: Readonly<Record<typeof name, () => Promise<Response>>> = {
      respond: () => calls.post({ input: text }),
      continue: () => calls.post({ input: text, previous_response_id: ids.response }),
      get: () => calls.get(ids.response),
      delete: () => calls.remove(ids.response),
      items: () => calls.inputItems(ids.response),
      models: () => calls.ask("GET", "models"),
      key: () => calls.ask("GET", "key"),
      message: () => asked("messages", { max_tokens: 64, messages: said(text) }),
      "stream a message": () =>
        asked("messages", { max_tokens: 64, stream: true, messages: said(text) }),
      count: () => asked("messages/count_tokens", { messages: said(text) }),
      embed: () => asked("embeddings", { input: text }),
      "a stranger's Session": () =>
        post({
          messages: [{ role: "user", content: text }],
          ...own,
          session_id: stranger?.session ?? unknownId,
          turn_id: undefined,
        }),
      "a stranger's Turn": () =>
        post({
          messages: [{ role: "user", content: text }],
          ...own,
          session_id: undefined,
          turn_id: stranger?.turn ?? unknownId,
        }),
      "a stranger's response": () => calls.get(stranger?.response ?? `resp_${unknownId}`),
      "an unknown key": () => post({}, `${secret.slice(0, -1)}-`),
      "an invalid body": () => post({ messages: text }),
    };
    await see(name, answers[name]());
  }
  return { run, seen, ids };
}

/** The answer of a provider: everything that it was asked, so that nothing of others can hide. */
const echo = ({ request, embedding }: ScriptedCall) => ({
  embeddings: embedding?.inputs.map((input) => [input.length]) ?? [],
  text: [
    request.messages
      .map(({ content }) => JSON.stringify(content))
      .join("; ")
      .replaceAll('"', "'"),
    ".",
  ],
});

/** Runs the uses of these tenants in one gateway, and returns what each of them saw. */
async function observe(
  store: Store,
  history: readonly { tenant: number; use: Use }[],
  who: readonly number[],
) {
  const log = eventLog();
  const test = await createTestGateway({
    store,
    observers: log.observers,
    maintenance: false,
    retries: { max: 0 },
    budgets: [
      { id: "org", limit: { requests: 12 }, period: "total", scope: { organization: "acme" } },
      { id: "each", limit: { requests: 9 }, period: "total", scope: { each: "key" } },
    ],
  });
  test.provider.reply(echo, { times: Number.POSITIVE_INFINITY });
  const tenants = await openTenants(test, log, who);
  for (const { tenant, use } of history)
    await tenants.get(tenant)?.run(use, tenants.get(1 - tenant)?.ids);
  await test.clock.until(test.gateway.close());
  return new Map([...tenants].map(([tenant, { seen }]) => [tenant, seen]));
}

async function openTenants(
  { gateway, createKey }: TestGateway,
  log: EventLog,
  who: readonly number[],
) {
  const tenants = new Map<number, ReturnType<typeof tenantOf>>();
  for (const tenant of who) {
    const organizationId = names[tenant] ?? "";
    const { key } = await createKey({ organizationId, userId: "ada", label: "key" });
    tenants.set(tenant, tenantOf({ gateway, log }, organizationId, key.secret));
  }
  return tenants;
}

const idForm =
  /(?<![0-9a-f])[0-9a-f]{8}-?[0-9a-f]{4}-?7[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}(?![0-9a-f])/g;
/** The start of a key's secret, and digests, in which an id may be. */
const derived = /\btg_[0-9A-Za-z]{4}\b|(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])/g;

/** Ids by the order of their first appearance, because others use up ids too. */
function withoutIds(seen: readonly string[]): readonly string[] {
  const known = new Map<string, number>();
  const numbered = (id: string): string => {
    if (!known.has(id)) known.set(id, known.size);
    return `#${known.get(id)}`;
  };
  return seen.map((text) => text.replace(idForm, numbered).replace(derived, numbered));
}

const idsIn = (seen: readonly string[] = []) =>
  new Set(seen.flatMap((text) => text.match(idForm) ?? []).filter((id) => id !== unknownId));

describe.each(stores)("a tenant, on %s", (_, open) => {
  it("sees the same whether it is alone or others use the gateway in between (T1, S39)", async () => {
    await fc.assert(
      fc.asyncProperty(histories, async (history) => {
        const together = await observe(open(), history, [0, 1]);
        for (const tenant of [0, 1]) {
          const own = history.filter((one) => one.tenant === tenant);
          const alone = await observe(open(), own, [tenant]);
          expect(withoutIds(together.get(tenant) ?? [])).toEqual(
            withoutIds(alone.get(tenant) ?? []),
          );
        }
        const [first, second] = [idsIn(together.get(0)), idsIn(together.get(1))];
        expect([...first].filter((id) => second.has(id))).toEqual([]);
      }),
      { numRuns: 8 },
    );
  });
});
