import { hash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { everyOrganization, type OrganizationScope } from "@tollgate/core";
import type { Store } from "@tollgate/core/store";
import { openaiCompatible } from "@tollgate/provider-openai";
import { memoryStore } from "@tollgate/store-memory";
import { sqliteStore } from "@tollgate/store-sqlite";
import { createTestGateway, scriptedUpstream } from "@tollgate/testing";
import { expect, it, onTestFinished } from "vitest";
import { eventLog } from "./event-log.ts";

const credential = "sk-own-canary-0123456789abcdef";
const replaced = "sk-old-canary-fedcba9876543210";
const keyBytes = Buffer.from("key-encryption-key-canary-32-byt");
const organizationId = "organization-1";
const acme = { organizationId, gateway: "own" };
const all: OrganizationScope = { organizationId: everyOrganization };

/** Every form in which a credential or a key could leak. */
function formsOf(secret: Buffer): readonly string[] {
  return [
    secret.toString(),
    secret.toString().slice(3, 15),
    secret.toString().slice(-8),
    secret.toString("base64"),
    secret.toString("hex"),
    // As a Buffer and a Uint8Array are printed.
    (secret.toString("hex").match(/../g) ?? []).join(" "),
    [...secret].join(", "),
    hash("sha256", secret),
    hash("sha256", secret, "base64"),
  ];
}

const forms = [credential, replaced]
  .map((text) => Buffer.from(text))
  .concat(keyBytes)
  .flatMap(formsOf);

/** An upstream whose errors repeat the whole request. */
async function gossipingUpstream() {
  const upstream = await scriptedUpstream(({ head, send }, number) => {
    const error = { message: head, type: "auth", code: credential, param: credential };
    const status = [401, 400, 500, 429][number % 4];
    const body = JSON.stringify({ error });
    const headers = `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}`;
    return send(
      `HTTP/1.1 ${status} No\r\n${headers}\r\nx-request-id: ${credential}\r\n\r\n${body}`,
    );
  });
  onTestFinished(() => upstream.close());
  return upstream;
}

/** Everything that becomes visible while credentials are set, used, refused, resealed and removed. */
async function everythingSaid(store: Store): Promise<readonly string[]> {
  const upstream = await gossipingUpstream();
  const log = eventLog();
  const own = openaiCompatible({ baseURL: `${upstream.url}/v1`, connection: "customer" });
  const test = await createTestGateway({
    store,
    providers: { own },
    observers: log.observers,
    retries: { max: 0 },
    secrets: { current: "k1", keys: { k1: keyBytes.toString("base64") } },
  });
  const { gateway, chat, key } = test;
  const said: string[] = [];
  const keep = (value: unknown) =>
    said.push(
      inspect(value, { depth: 12, maxArrayLength: null, maxStringLength: null, showHidden: true }),
    );
  const failing = async (promise: Promise<unknown>) => keep(await promise.catch((error) => error));
  keep(await gateway.connections.set({ ...acme, apiKey: replaced }));
  keep(await gateway.connections.set({ ...acme, apiKey: credential }));
  for (const stream of [false, true, false, true]) {
    const answer = await gateway.fetch(chat({ model: "own/a/b", stream }));
    expect(answer.status).toBeGreaterThanOrEqual(400);
    keep([...answer.headers]);
    said.push(await answer.text());
  }
  expect(upstream.requests).toHaveLength(4);
  for (const { head } of upstream.requests) expect(head).toContain(`Bearer ${credential}`);
  await failing(gateway.connections.set({ ...acme, gateway: credential, apiKey: credential }));
  await failing(gateway.connections.set({ ...acme, apiKey: `${credential}\n` }));
  await failing(gateway.connections.get({ ...acme, gateway: "other" }));
  keep(await gateway.connections.get(acme));
  keep((await gateway.connections.list(all)).data);
  keep(await gateway.connections.reseal());
  const bearer = { headers: { authorization: `Bearer ${key.secret}` } };
  said.push(await (await gateway.fetch("http://in-process/v1/models", bearer)).text());
  for (const list of [gateway.steps, gateway.decisions, gateway.activity, gateway.sessions])
    keep((await list.list(all)).data);
  for (const { id } of (await gateway.sessions.list(all)).data)
    keep(await gateway.sessions.transcript({ organizationId, id }));
  const paging = { cursor: null, limit: 1_000 };
  keep((await store.evidence.list(acme, paging)).data);
  const rows = (await store.connections.list({ organizationId: null }, paging)).data;
  keep(rows);
  said.push(
    ...rows.map((row) => Buffer.concat([row.credential, row.wrappedKey]).toString("latin1")),
  );
  await gateway.connections.remove(acme);
  keep(log.seen);
  keep(gateway);
  return said;
}

it("a credential and its key appear nowhere but upstream (S14, S36)", async () => {
  for (const text of await everythingSaid(memoryStore()))
    for (const form of forms) expect(text.includes(form), form).toBe(false);
});

it("a database file contains neither, whole or in part, sealed or removed (S36)", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-own-secrets-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const store = sqliteStore({ filename: join(folder, "tollgate.db") });
  const said = await everythingSaid(store);
  const bytes = () => readdirSync(folder).map((file) => readFileSync(join(folder, file)));
  const open = Buffer.concat(bytes());
  await store.close();
  for (const form of forms) {
    for (const text of said) expect(text.includes(form), form).toBe(false);
    expect(open.includes(form), form).toBe(false);
    expect(Buffer.concat(bytes()).includes(form), form).toBe(false);
  }
});
