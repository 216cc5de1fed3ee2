import { everyOrganization, type GatewayError } from "@tollgate/core";
import { openaiCompatible } from "@tollgate/provider-openai";
import {
  type ChatFields,
  countingIds,
  createTestGateway,
  scriptedUpstream,
} from "@tollgate/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { openOwnGateways } from "./own-gateways.ts";
import { stores } from "./stores.ts";
import { completionOf, failureOf } from "./wire.ts";
import { written } from "./written.ts";

const model = "own/a/b";
const acme = { organizationId: "organization-1", gateway: "own" };
const globex = { organizationId: "globex", gateway: "own" };

/** An upstream's answer that names the credential it received. */
function echoing(head: string): string {
  const credential = /^authorization: Bearer (.*)$/im.exec(head)?.[1] ?? "none";
  const body = JSON.stringify({
    id: "x",
    object: "chat.completion",
    created: 1,
    model: "b",
    choices: [
      { index: 0, message: { role: "assistant", content: credential }, finish_reason: "stop" },
    ],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  });
  const length = Buffer.byteLength(body);
  return `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n${body}`;
}

describe.each(stores)("a customer-owned connection, on %s (section 5.1)", (_, open) => {
  it("sends each organization's own credential upstream, and none for an organization without one", async () => {
    const upstream = await scriptedUpstream(({ head, send }) => send(echoing(head)));
    onTestFinished(() => upstream.close());
    const own = openaiCompatible({ baseURL: `${upstream.url}/v1`, connection: "customer" });
    const test = await createTestGateway({ store: open(), providers: { own } });
    onTestFinished(() => test.gateway.close());
    const others = await test.createKey({ organizationId: "globex" });
    const without = await test.createKey({ organizationId: "initech" });
    await test.gateway.connections.set({ ...acme, apiKey: "sk-acme" });
    await test.gateway.connections.set({ ...globex, apiKey: "sk-globex two words" });
    const said = async (chat: typeof test.chat) =>
      (await completionOf(test.gateway.fetch(chat({ model })))).choices[0].message.content;
    expect(await Promise.all([said(test.chat), said(others.chat), said(test.chat)])).toEqual([
      "sk-acme",
      "sk-globex two words",
      "sk-acme",
    ]);
    const refused = await test.gateway.fetch(without.chat({ model }));
    expect(refused.status).toBe(400);
    expect(await failureOf(refused)).toMatchObject({ code: "connection_required", param: "model" });
    expect(upstream.requests).toHaveLength(3);
  });

  it("is checked after the model, but before ids and the policy, and leaves nothing", async () => {
    const { gateway, chat, upstream } = await openOwnGateways({ store: open() });
    const session_id = "00000000-0000-4000-8000-000000000000";
    const codeOf = async (fields: ChatFields) =>
      (await failureOf(gateway.fetch(chat(fields)))).code;
    expect(await codeOf({ model: "nowhere/a/b" })).toBe("model_not_found");
    expect(await codeOf({ model, session_id })).toBe("connection_required");
    await gateway.connections.set({ ...acme, apiKey: "sk-1" });
    expect(await codeOf({ model, session_id })).toBe("session_not_found");
    expect(await codeOf({ model: "spare/a/b" })).toBe("connection_required");
    expect(upstream.calls).toEqual([]);
    expect(await written(gateway)).toEqual({ steps: 0, sessions: 0, decisions: 0 });
  });

  it("can be set, read, listed and removed, and never reveals its credential", async () => {
    const { gateway, clock, credentials, chat } = await openOwnGateways({ store: open() });
    const { connections } = gateway;
    const made = await connections.set({ ...acme, apiKey: "sk-1", actor: "ops" });
    expect(made).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      ...acme,
      createdAt: "2026-01-01T00:00:00.000Z",
      updatedAt: "2026-01-01T00:00:00.000Z",
      keyId: "test",
    });
    await clock.advance("1s");
    const changed = await connections.set({ ...acme, apiKey: "sk-2" });
    expect(changed).toEqual({ ...made, updatedAt: "2026-01-01T00:00:01.000Z" });
    expect(await connections.get(acme)).toEqual(changed);
    const theirs = await connections.set({ ...globex, apiKey: "sk-3" });
    const spare = await connections.set({ ...acme, gateway: "spare", apiKey: "sk-4" });
    const list = async (organizationId: string | typeof everyOrganization) =>
      (await connections.list({ organizationId })).data;
    expect(await list("organization-1")).toEqual([changed, spare]);
    expect(await list(everyOrganization)).toEqual([theirs, changed, spare]);
    const [first] = (await connections.list({ organizationId: everyOrganization }, { limit: 1 }))
      .data;
    expect(first).toEqual(theirs);
    await gateway.fetch(chat({ model }));
    await connections.set({ ...acme, apiKey: "sk-5" });
    await gateway.fetch(chat({ model }));
    expect(credentials()).toEqual(["own sk-2", "own sk-5"]);
    await connections.remove({ ...acme, actor: "ops" });
    await expect(connections.get(acme)).rejects.toMatchObject({ code: "connection_not_found" });
    expect((await gateway.fetch(chat({ model }))).status).toBe(400);
    expect(await list("organization-1")).toEqual([spare]);
  });

  it("records evidence of each change: who, which gateway, wrapped by which key", async () => {
    const store = open();
    const { gateway } = await openOwnGateways({ store });
    const { id } = await gateway.connections.set({ ...acme, apiKey: "sk-1", actor: "ops" });
    await gateway.connections.remove(acme);
    const { organizationId } = acme;
    const { data } = await store.evidence.list({ organizationId }, { cursor: null, limit: 9 });
    const facts = data.map(({ kind, meta }) => ({ kind, ...JSON.parse(meta) }));
    const fact = { connection: id, gateway: "own", wrappedBy: "test" };
    expect(facts.slice(1)).toMatchObject([
      { kind: "connection.set", actor: "ops", ...fact },
      { kind: "connection.removed", actor: null, ...fact },
    ]);
  });

  it("shows changes by another process within 5 seconds, and its own at once", async () => {
    const store = open();
    const here = await openOwnGateways({ store });
    const { clock } = here;
    const there = await openOwnGateways({ store, clock, ids: countingIds(1) });
    const ask = async () => (await here.gateway.fetch(here.chat({ model }))).status;
    expect(await ask()).toBe(400);
    await there.gateway.connections.set({ ...acme, apiKey: "sk-1" });
    expect(await ask()).toBe(200);
    await there.gateway.connections.set({ ...acme, apiKey: "sk-2" });
    await clock.advance(4_999);
    expect(await ask()).toBe(200);
    await clock.advance(1);
    expect(await ask()).toBe(200);
    expect(here.credentials()).toEqual(["own sk-1", "own sk-1", "own sk-2"]);
    await there.gateway.connections.remove(acme);
    await clock.advance("5s");
    expect(await ask()).toBe(400);
    expect(here.credentials()).toHaveLength(3);
  });

  it("gives 503 and sends nothing if the store can't read it", async () => {
    const store = open();
    const down = async () => Promise.reject(new Error("down"));
    const failing = { ...store, connections: { ...store.connections, get: down } };
    const { gateway, chat, upstream } = await openOwnGateways({ store: failing });
    const answer = await gateway.fetch(chat({ model }));
    expect(answer.status).toBe(503);
    expect(await failureOf(answer)).toMatchObject({ code: "evidence_unavailable" });
    expect((await gateway.fetch(chat())).status).toBe(200);
    expect(upstream.calls).toEqual([]);
  });

  it("lists its gateway's models for organizations that have one", async () => {
    const { gateway, key, createKey } = await openOwnGateways({ store: open() });
    const other = (await createKey({ organizationId: "globex" })).key;
    await gateway.connections.set({ ...acme, apiKey: "sk-1" });
    const get = async (secret: string, path: string) =>
      gateway.fetch(`http://in-process/v1/${path}`, {
        headers: { authorization: `Bearer ${secret}` },
      });
    const ids = async (secret: string) =>
      JSON.stringify(await (await get(secret, "models")).json()).match(/\w+\/\w+\/\w+/g);
    expect(await ids(key.secret)).toEqual(["test/tollgate/scripted", "own/a/b"]);
    expect(await ids(other.secret)).toEqual(["test/tollgate/scripted"]);
    expect((await get(key.secret, "models/own/a/b")).status).toBe(200);
    expect((await get(other.secret, "models/own/a/b")).status).toBe(404);
  });
});

describe("an invalid connection", () => {
  it.each([
    ["an unknown gateway", { gateway: "nowhere" }, "gateway"],
    ["a gateway of the platform", { gateway: "test" }, "gateway"],
    ["an empty gateway", { gateway: "" }, "gateway"],
    ["no organization", { organizationId: "" }, "organizationId"],
    ["an empty credential", { apiKey: "" }, "apiKey"],
    ["a credential with a line end", { apiKey: "sk-1\n" }, "apiKey"],
    ["a credential with a space at its end", { apiKey: "sk-1 " }, "apiKey"],
    ["a credential that is not ASCII", { apiKey: "sk-\u{e9}" }, "apiKey"],
    ["a credential with a control character", { apiKey: "sk-\u00001" }, "apiKey"],
    ["a credential of 8,193 characters", { apiKey: "x".repeat(8_193) }, "apiKey"],
    ["an empty actor", { actor: "" }, "actor"],
  ])("%s is rejected, and leaves nothing behind", async (_name, wrong, param) => {
    const { gateway, store } = await openOwnGateways();
    const setting = { ...acme, apiKey: "sk-1", ...wrong };
    const error = await gateway.connections.set(setting).catch((thrown: GatewayError) => thrown);
    expect(error).toMatchObject({ code: "invalid_argument", param });
    expect((await gateway.connections.list({ organizationId: everyOrganization })).data).toEqual(
      [],
    );
    const { data } = await store.evidence.list(acme, { cursor: null, limit: 9 });
    expect(data.map(({ kind }) => kind)).toEqual(["key.created"]);
  });

  it("accepts a credential of 8,192 characters", async () => {
    const { gateway, chat, upstream } = await openOwnGateways();
    const apiKey = "x".repeat(8_192);
    await gateway.connections.set({ ...acme, apiKey });
    await gateway.fetch(chat({ model }));
    expect(upstream.calls.map(({ credential }) => credential)).toEqual([apiKey]);
  });

  it("can't be read or removed by another organization", async () => {
    const { gateway } = await openOwnGateways();
    await gateway.connections.set({ ...acme, apiKey: "sk-1" });
    for (const reference of [
      globex,
      { ...acme, gateway: "spare" },
      { ...acme, gateway: "nowhere" },
    ]) {
      const missing = { code: "connection_not_found" };
      await expect(gateway.connections.get(reference)).rejects.toMatchObject(missing);
      await expect(gateway.connections.remove(reference)).rejects.toMatchObject(missing);
    }
    const { organizationId } = globex;
    expect((await gateway.connections.list({ organizationId })).data).toEqual([]);
    expect(await gateway.connections.get(acme)).toMatchObject(acme);
  });
});
