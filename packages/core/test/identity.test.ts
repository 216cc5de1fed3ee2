import type { HostCaller } from "@tollgate/core";
import { definePolicy, permit } from "@tollgate/core/policy";
import type { Store } from "@tollgate/core/store";
import { countingIds, createTestGateway } from "@tollgate/testing";
import fc from "fast-check";
import OpenAI from "openai";
import { describe, expect, it } from "vitest";
import { stores } from "./stores.ts";
import { completionOf } from "./wire.ts";

const organizationId = "organization-1";
const ada: HostCaller = { organizationId, userId: "ada", label: "web", source: "app" };
const first = [{ role: "user", content: "Hello" }];
const second = [...first, { role: "assistant", content: "OK" }, { role: "user", content: "More" }];

async function createdKeys(store: Store): Promise<number> {
  const { data } = await store.evidence.list({ organizationId }, { cursor: null, limit: 1_000 });
  return data.filter(({ kind }) => kind === "key.created").length;
}

describe.each(stores)("a caller named with `as`, with %s", (_name, open) => {
  it("needs no secret, and an Authorization header is ignored", async () => {
    const { gateway, chat } = await createTestGateway({ store: open() });
    const { fetch } = gateway.as(ada);
    await completionOf(fetch(chat({}, { authorization: "Bearer nonsense" })));
    await completionOf(fetch(chat()));
    const client = new OpenAI({ baseURL: "http://in-process/v1", apiKey: "unused", fetch });
    const model = "test/tollgate/scripted";
    const answer = await client.chat.completions.create({
      model,
      messages: [{ role: "user", content: "x" }],
    });
    expect(answer.choices[0]?.message.content).toBe("OK");
    const { data } = await gateway.activity.list({ organizationId });
    const { data: keys } = await gateway.keys.list({ organizationId, userId: "ada" });
    expect(keys).toMatchObject([{ label: "web", prefix: "" }]);
    expect(data).toHaveLength(3);
    for (const record of data)
      expect(record).toMatchObject({
        userId: "ada",
        keyId: keys[0]?.id,
        keyLabel: "web",
        source: "app",
      });
  });

  it("has one key record, even for concurrent calls, and its use is recorded", async () => {
    const { gateway, store, clock, chat } = await createTestGateway({ store: open() });
    const asked = Array.from({ length: 12 }, () => gateway.as(ada).fetch(chat()));
    for (const answer of await Promise.all(asked)) expect(answer.status).toBe(200);
    const { data } = await gateway.keys.list({ organizationId, userId: "ada" });
    expect(data).toHaveLength(1);
    expect(await createdKeys(store)).toBe(2);
    await clock.advance("1m");
    const [key] = (await gateway.keys.list({ organizationId, userId: "ada" })).data;
    expect(key?.lastUsedAt).toBe("2026-01-01T00:00:00.000Z");
  });

  it("is found by its label, so its key record has no secret and keeps its label", async () => {
    const { gateway, chat } = await createTestGateway({ store: open() });
    await completionOf(gateway.as(ada).fetch(chat()));
    const { data } = await gateway.keys.list({ organizationId, label: ada.label });
    const one = { organizationId, id: data[0]?.id ?? "" };
    expect(data).toMatchObject([{ prefix: "", label: ada.label }]);
    await expect(gateway.keys.rotate(one)).rejects.toMatchObject({
      code: "invalid_argument",
      param: "id",
    });
    await expect(gateway.keys.update({ ...one, label: "other" })).rejects.toMatchObject({
      code: "invalid_argument",
      param: "label",
    });
    const classes = { label: ada.label, minimumDataClass: "D1_INTERNAL" };
    expect(await gateway.keys.update({ ...one, ...classes })).toMatchObject(classes);
  });

  it("is rejected by every gateway on the store once its key record is revoked", async () => {
    const store = open();
    const a = await createTestGateway({ store });
    const b = await createTestGateway({ store, clock: a.clock, ids: countingIds(1) });
    const posts = [a, b].map(
      ({ gateway, chat }) =>
        () =>
          gateway.as(ada).fetch(chat()),
    );
    const models = () => new Request("http://in-process/v1/models");
    for (const post of posts) expect((await post()).status).toBe(200);
    await a.gateway.keys.revoke({ organizationId, userId: "ada" });
    for (const post of posts) expect((await post()).status).toBe(401);
    for (const { gateway } of [a, b]) {
      const answer = await gateway.as(ada).fetch(models());
      expect(JSON.parse(await answer.text()).error.code).toBe("invalid_api_key");
    }
    // Another label uses another key record, which isn't revoked.
    const other = await a.gateway.as({ ...ada, label: "job" }).fetch(a.chat());
    expect(other.status).toBe(200);
  });

  it("continues only Sessions of its own source", async () => {
    const { gateway, chat } = await createTestGateway({ store: open() });
    const [app, job, api] = ["app", "job", undefined].map((source) =>
      gateway.as({ ...ada, source }),
    );
    const sessionOf = async (entrance: typeof app, messages: object) =>
      (await completionOf((entrance ?? gateway).fetch(chat({ messages })))).session_id;
    const ofApp = await sessionOf(app, first);
    const ofJob = await sessionOf(job, second);
    expect(ofJob).not.toBe(ofApp);
    expect(await sessionOf(api, second)).not.toBe(ofApp);
    expect(await sessionOf(app, second)).toBe(ofApp);
    // Each label is a separate key, so another label can't continue this one's Session.
    const other = gateway.as({ ...ada, label: "other" });
    expect(await sessionOf(other, second)).not.toBe(ofApp);
  });

  it("owns its stored responses: no other label, user or organization finds them (section 5.2)", async () => {
    const { gateway } = await createTestGateway({ store: open() });
    const clientOf = (caller: HostCaller) =>
      new OpenAI({
        baseURL: "http://in-process/v1",
        apiKey: "unused",
        maxRetries: 0,
        fetch: gateway.as(caller).fetch,
      });
    const model = "test/tollgate/scripted";
    const stored = await clientOf(ada).responses.create({ model, input: "Hello" });
    expect((await clientOf(ada).responses.retrieve(stored.id)).id).toBe(stored.id);
    const others = [
      { ...ada, label: "other" },
      { ...ada, userId: "eve" },
      { ...ada, organizationId: "organization-2" },
    ];
    for (const other of others)
      await expect(clientOf(other).responses.retrieve(stored.id)).rejects.toMatchObject({
        status: 404,
      });
    await clientOf(ada).responses.delete(stored.id);
  });

  it("counts on a budget per key, apart from keys with the same label", async () => {
    const { gateway, chat } = await createTestGateway({
      store: open(),
      budgets: [{ id: "each", scope: { each: "key" }, limit: { requests: 1 }, period: "day" }],
    });
    const statusOf = async (caller: HostCaller) => (await gateway.as(caller).fetch(chat())).status;
    expect(await statusOf(ada)).toBe(200);
    expect(await statusOf({ ...ada, source: "job" })).toBe(429);
    expect(await statusOf({ ...ada, label: "other" })).toBe(200);
    expect(await statusOf({ ...ada, userId: "bob" })).toBe(200);
  });
});

describe("a caller's data from the host", () => {
  it("sets the classes and models of its calls", async () => {
    const { gateway, chat } = await createTestGateway();
    const classOf = async (caller: HostCaller, headers = {}) => {
      const answer = await gateway.as(caller).fetch(chat({}, headers));
      return answer.headers.get("x-service-data-sensitivity") ?? answer.status;
    };
    const header = { "x-service-data-sensitivity": "D1_INTERNAL" };
    expect(await classOf(ada)).toBe("D1_INTERNAL");
    expect(await classOf({ ...ada, defaultDataClass: "D0_PUBLIC" })).toBe("D0_PUBLIC");
    const strict = { ...ada, minimumDataClass: "D2_CONFIDENTIAL" };
    expect(await classOf(strict)).toBe("D2_CONFIDENTIAL");
    expect(await classOf(strict, header)).toBe(400);
    expect(await classOf(ada, header)).toBe("D1_INTERNAL");
    expect(await classOf({ ...ada, models: ["test/other/*"] })).toBe("D1_INTERNAL");
    const limited = await gateway.as({ ...ada, models: ["test/other/*"] }).fetch(chat());
    expect(limited.status).toBe(403);
  });

  it("applies together with an administrator's changes to the key record: the stricter of both", async () => {
    const { gateway, clock, chat } = await createTestGateway();
    await gateway.as(ada).fetch(chat());
    const [key] = (await gateway.keys.list({ organizationId, userId: "ada" })).data;
    const one = { organizationId, id: key?.id ?? "" };
    await gateway.keys.update({
      ...one,
      models: ["test/tollgate/*"],
      minimumDataClass: "D2_CONFIDENTIAL",
      defaultDataClass: "D2_CONFIDENTIAL",
    });
    await clock.advance("5s");
    const ask = async (caller: HostCaller, model = "test/tollgate/scripted") => {
      const answer = await gateway.as(caller).fetch(chat({ model }));
      return [answer.status, answer.headers.get("x-service-data-sensitivity")];
    };
    expect(await ask(ada)).toEqual([200, "D2_CONFIDENTIAL"]);
    const loose = { ...ada, defaultDataClass: "D0_PUBLIC", models: ["*/*/*"] };
    expect(await ask(loose)).toEqual([200, "D2_CONFIDENTIAL"]);
    expect(await ask(loose, "test/other/model")).toEqual([403, "D2_CONFIDENTIAL"]);
    expect(await ask({ ...ada, models: ["test/other/*"] })).toEqual([403, "D2_CONFIDENTIAL"]);
    const higher = { ...ada, minimumDataClass: "D3_RESTRICTED" };
    expect(await ask(higher)).toEqual([200, "D3_RESTRICTED"]);
  });

  it("can't be changed later through the original object", async () => {
    const { gateway, chat } = await createTestGateway();
    const models = ["test/tollgate/*"];
    const caller = { ...ada, models };
    const { fetch } = gateway.as(caller);
    caller.userId = "eve";
    models.push("*/*/*");
    expect((await fetch(chat({ model: "test/other/model" }))).status).toBe(403);
    expect((await gateway.keys.list({ organizationId, userId: "eve" })).data).toEqual([]);
  });

  it("becomes policy facts: source and user can be permitted", async () => {
    const policy = definePolicy({ rules: [permit("app", { source: "app", user: "ada" })] });
    const { gateway, chat } = await createTestGateway({ policy });
    const statusOf = async (caller: HostCaller) => (await gateway.as(caller).fetch(chat())).status;
    expect(await statusOf(ada)).toBe(200);
    expect(await statusOf({ ...ada, source: "api" })).toBe(403);
    expect(await statusOf({ ...ada, userId: "bob" })).toBe(403);
    expect((await gateway.fetch(chat())).status).toBe(403);
  });

  const wrong: readonly (readonly [string | null, unknown])[] = [
    ["organizationId", null],
    [null, "ada"],
    ["organizationId", {}],
    ["organizationId", { ...ada, organizationId: "" }],
    ["organizationId", { ...ada, organizationId: 7 }],
    ["userId", { ...ada, userId: "x".repeat(256) }],
    ["userId", { ...ada, userId: null }],
    ["label", { ...ada, label: "a\u0000b" }],
    ["source", { ...ada, source: "" }],
    ["source", { ...ada, source: {} }],
    ["defaultDataClass", { ...ada, defaultDataClass: "D9" }],
    ["minimumDataClass", { ...ada, minimumDataClass: null }],
    ["minimumDataClass", { ...ada, minimumDataClass: "D9" }],
    ["minimumDataClass", { ...ada, defaultDataClass: "D1_INTERNAL", minimumDataClass: "D9" }],
    ["defaultDataClass", { ...ada, defaultDataClass: "D9", minimumDataClass: "D1_INTERNAL" }],
    [
      "defaultDataClass",
      { ...ada, defaultDataClass: "D0_PUBLIC", minimumDataClass: "D1_INTERNAL" },
    ],
    ["models", { ...ada, models: "*/*/*" }],
    ["models[0]", { ...ada, models: ["everything"] }],
  ];

  it.each(wrong)("is rejected at once if it is invalid: %s of %j", async (param, caller) => {
    const { gateway } = await createTestGateway();
    const naming = () => gateway.as(caller as HostCaller);
    expect(naming).toThrow(expect.objectContaining({ code: "invalid_argument", param }));
    expect((await gateway.keys.list({ organizationId })).data).toHaveLength(1);
  });

  it("alone determines the caller: metadata doesn't (S37)", async () => {
    const { gateway, chat } = await createTestGateway({
      budgets: [
        { id: "each", scope: { each: "user" }, limit: { requests: 1_000 }, period: "total" },
      ],
    });
    const { fetch } = gateway.as(ada);
    const names = fc.constantFrom(
      ...["organizationId", "organization_id", "userId", "user", "key", "source", "label"],
      ...["dataClass", "defaultDataClass", "minimumDataClass", "models", "role", "tags"],
    );
    const values = fc.oneof(fc.constantFrom("organization-2", "eve", "api", "*/*/*"), fc.string());
    const metadata = fc.dictionary(names, values, { maxKeys: 12 });
    const plain = await completionOf(fetch(chat()));
    const factsOf = async () => (await gateway.decisions.list({ organizationId })).data[0]?.facts;
    const facts = await factsOf();
    await fc.assert(
      fc.asyncProperty(metadata, fc.string(), async (said, user) => {
        const answer = await completionOf(fetch(chat({ metadata: said, user })));
        expect(answer.usage).toEqual(plain.usage);
        expect(await factsOf()).toEqual(facts);
      }),
      { numRuns: 100 },
    );
    expect((await gateway.budgets.status({ id: "each" })).data).toMatchObject([
      { subject: JSON.stringify([organizationId, "ada"]), settled: 101 },
    ]);
    expect((await gateway.keys.list({ organizationId })).data).toHaveLength(2);
  });
});
