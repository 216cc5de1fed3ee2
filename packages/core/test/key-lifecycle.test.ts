import { createHash } from "node:crypto";
import {
  everyOrganization,
  type KeyRecord,
  type Keys,
  type OrganizationScope,
} from "@tollgate/core";
import { definePolicy, permit } from "@tollgate/core/policy";
import type { EvidenceLeaf, Store } from "@tollgate/core/store";
import { countingIds, createTestGateway } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { stores } from "./stores.ts";

const organizationId = "organization-1";

async function leavesOf(store: Store): Promise<readonly EvidenceLeaf[]> {
  return (await store.evidence.list({ organizationId }, { cursor: null, limit: 1_000 })).data;
}

const statusOf = async (answer: Promise<Response>): Promise<number> => (await answer).status;

/** A store, and a function that runs before each change of a key. */
function changing(store: Store) {
  const before: { change: (name: { readonly id: string }) => void } = { change: () => {} };
  const { change } = store.keys;
  const keys: Store["keys"] = {
    ...store.keys,
    async change(name, decide) {
      before.change(name);
      return change(name, decide);
    },
  };
  return { store: { ...store, keys }, before };
}

describe.each(stores)("the life of an API key, with %s", (_name, open) => {
  it("is recorded in order, with the actor of each change", async () => {
    const { gateway, store, key } = await createTestGateway({ store: open() });
    const one = { organizationId, id: key.id, actor: "ops" };
    await gateway.keys.update({ ...one, label: "renamed", minimumDataClass: "D1_INTERNAL" });
    const { key: rotated } = await gateway.keys.rotate(one);
    expect(rotated.prefix).not.toBe(key.prefix);
    expect(rotated.label).toBe("renamed");
    await gateway.keys.revoke(one);
    const leaves = (await leavesOf(store)).map(({ kind, meta }) => [kind, JSON.parse(meta).actor]);
    expect(leaves).toEqual([
      ["key.created", null],
      ["key.updated", "ops"],
      ["key.rotated", "ops"],
      ["key.revoked", "ops"],
    ]);
  });

  it("is not recorded by an update that changes no member", async () => {
    const { gateway, store, key } = await createTestGateway({ store: open() });
    const one = { organizationId, id: key.id };
    const before = [await gateway.keys.get(one), await leavesOf(store)];
    expect(await gateway.keys.update({ ...one, actor: "ops" })).toEqual(before[0]);
    const stale = gateway.keys.update({ ...one, ifMatch: "other" });
    await expect(stale).rejects.toMatchObject({ code: "precondition_failed" });
    expect([await gateway.keys.get(one), await leavesOf(store)]).toEqual(before);
    await gateway.keys.revoke(one);
    await expect(gateway.keys.update(one)).rejects.toMatchObject({ code: "key_not_live" });
  });

  it("is recorded with every fact that changed, and only with those", async () => {
    const { gateway } = await createTestGateway({ store: open() });
    const { key } = await gateway.keys.create({
      organizationId,
      userId: "user-1",
      label: "app",
      minimumDataClass: "D1_INTERNAL",
      defaultDataClass: "D2_CONFIDENTIAL",
      models: ["test/*/*"],
      expiresAt: "2026-01-02T00:00:00Z",
    });
    const labelSha256 = (label: string) => createHash("sha256").update(label).digest("hex");
    const one = { organizationId, id: key.id, actor: "ops" };
    const changes = async () =>
      (await gateway.changes.list({ organizationId })).data.filter(
        ({ facts }) => facts["key"] === key.id,
      );
    const latest = async () => (await changes())[0]?.facts;
    expect(await latest()).toEqual({
      key: key.id,
      labelSha256: labelSha256("app"),
      minimumDataClass: "D1_INTERNAL",
      defaultDataClass: "D2_CONFIDENTIAL",
      models: ["test/*/*"],
      aliases: null,
      leadingSystem: null,
      expiresAt: Date.UTC(2026, 0, 2),
    });
    expect(await gateway.keys.update({ ...one, label: "other" })).toMatchObject({
      id: key.id,
      label: "other",
    });
    expect(await latest()).toEqual({ key: key.id, labelSha256: labelSha256("other") });
    const opened = { models: null, leadingSystem: "apart", expiresAt: null } as const;
    expect(await gateway.keys.update({ ...one, ...opened })).toMatchObject(opened);
    expect(await latest()).toEqual({ key: key.id, ...opened });
    await gateway.keys.rotate(one);
    expect(await latest()).toEqual({ key: key.id });
    const { revokedAt } = await gateway.keys.revoke(one);
    expect(revokedAt).toBe("2026-01-01T00:00:00.000Z");
    expect(await latest()).toEqual({ key: key.id, revokedAt: Date.UTC(2026, 0, 1) });
    // Again, it stays as it is.
    expect(await gateway.keys.revoke(one)).toMatchObject({ id: key.id, revokedAt });
    expect(await changes()).toHaveLength(5);
  });

  it("ends for all keys of a user at once, and for nobody else's", async () => {
    const { gateway, store, clock, chat, createKey } = await createTestGateway({ store: open() });
    const second = await createKey();
    const earlier = await createKey();
    await gateway.keys.revoke({ organizationId, id: earlier.key.id });
    const expired = await createKey({ expiresAt: "2026-01-01T00:01:00Z" });
    const others = [
      await createKey({ userId: "user-2" }),
      await createKey({ organizationId: "organization-2" }),
    ];
    await clock.advance("5m");
    const user = { organizationId, userId: "user-1", actor: "ops" };
    expect(await gateway.keys.revoke(user)).toEqual({ revoked: 3 });
    const revokedAt = "2026-01-01T00:05:00.000Z";
    const { data } = await gateway.keys.list({ organizationId, userId: "user-1" });
    expect(data).toMatchObject([
      { id: expired.key.id, revokedAt },
      { id: earlier.key.id, revokedAt: "2026-01-01T00:00:00.000Z" },
      { id: second.key.id, revokedAt },
      { label: "test key", revokedAt },
    ]);
    for (const ask of [chat, second.chat, earlier.chat, expired.chat])
      expect(await statusOf(gateway.fetch(ask()))).toBe(401);
    for (const { chat: ask } of others) expect(await statusOf(gateway.fetch(ask()))).toBe(200);
    const leaves = (await leavesOf(store)).filter(({ kind }) => kind === "key.revoked");
    expect(leaves).toHaveLength(4);
    const withoutId = { ...user, id: undefined };
    expect(await gateway.keys.revoke(withoutId)).toEqual({ revoked: 0 });
    const before = await gateway.keys.get({ organizationId, id: earlier.key.id });
    expect(before.revokedAt).toBe("2026-01-01T00:00:00.000Z");
  });

  it("ends for each of a user's many keys in turns between which other work runs", async () => {
    const { store, before } = changing(open());
    const { gateway } = await createTestGateway({ store });
    const user = { organizationId, userId: "many" };
    const ids: string[] = [];
    for (let at = 0; at < 60; at++)
      ids.unshift((await gateway.keys.create({ ...user, label: `${at}` })).key.id);
    /** The keys that changed in each turn of the event loop. */
    const turns: string[][] = [[]];
    before.change = ({ id }) => turns.at(-1)?.push(id);
    let isOver = false;
    const next = (): void => {
      if (isOver) return;
      turns.push([]);
      setImmediate(next);
    };
    setImmediate(next);
    const answer = await gateway.keys.revoke({ ...user, actor: "ops" });
    isOver = true;
    // A count, because a user may have any number of keys.
    expect(answer).toEqual({ revoked: ids.length });
    expect(turns.flat().toSorted()).toEqual(ids.toSorted());
    const changes = turns.filter((changed) => changed.length > 0);
    expect(changes.map(({ length }) => length)).toEqual([25, 25, 10]);
    const leaves = (await leavesOf(store)).filter(({ kind }) => kind === "key.revoked");
    expect(leaves.map(({ meta }) => JSON.parse(meta).key).toSorted()).toEqual(ids.toSorted());
    expect(new Set(leaves.map(({ meta }) => JSON.parse(meta).actor))).toEqual(new Set(["ops"]));
  });

  it("ends for the rest of a user's keys when a revocation that failed midway is repeated", async () => {
    const { store, before } = changing(open());
    const { gateway } = await createTestGateway({ store });
    const user = { organizationId, userId: "many" };
    for (let at = 0; at < 60; at++) await gateway.keys.create({ ...user, label: `${at}` });
    const live = async () =>
      (await gateway.keys.list({ ...user, live: true }, { limit: 100 })).data;
    let left = 30;
    before.change = () => {
      if (left-- === 0) throw new Error("the store is away");
    };
    await expect(gateway.keys.revoke(user)).rejects.toMatchObject({ code: "evidence_unavailable" });
    const rest = await live();
    expect(rest.length).toBeLessThan(60);
    expect(rest.length).toBeGreaterThan(0);
    before.change = () => {};
    expect(await gateway.keys.revoke(user)).toEqual({ revoked: rest.length });
    expect(await live()).toEqual([]);
    const leaves = (await leavesOf(store)).filter(({ kind }) => kind === "key.revoked");
    expect(new Set(leaves.map(({ meta }) => JSON.parse(meta).key)).size).toBe(60);
    expect(leaves).toHaveLength(60);
  });

  it("can be listed by user, by label and by whether a key works", async () => {
    const { gateway, clock, createKey } = await createTestGateway({ store: open() });
    await createKey({ label: "short", expiresAt: "2026-01-01T00:01:00Z" });
    await createKey({ label: "other", userId: "user-2" });
    const labels = async (filter: Omit<Parameters<Keys["list"]>[0], "organizationId">) =>
      (await gateway.keys.list({ organizationId, ...filter })).data.map(({ label }) => label);
    await clock.advance("59s");
    expect(await labels({ live: true })).toEqual(["other", "short", "test key"]);
    await clock.advance("1s");
    expect(await labels({ live: true })).toEqual(["other", "test key"]);
    expect(await labels({ live: false })).toEqual(["short"]);
    expect(await labels({ userId: "user-1", live: true })).toEqual(["test key"]);
    expect(await labels({ label: "other" })).toEqual(["other"]);
  });

  it("keeps both of two concurrent changes", async () => {
    const { gateway, key } = await createTestGateway({ store: open() });
    const one = { organizationId, id: key.id };
    await Promise.all([
      gateway.keys.update({ ...one, minimumDataClass: "D1_INTERNAL" }),
      gateway.keys.update({ ...one, defaultDataClass: "D2_CONFIDENTIAL" }),
      gateway.keys.update({ ...one, label: "renamed" }),
    ]);
    expect(await gateway.keys.get(one)).toMatchObject({
      label: "renamed",
      minimumDataClass: "D1_INTERNAL",
      defaultDataClass: "D2_CONFIDENTIAL",
    });
  });

  it("rejects unknown arguments by name, and changes nothing by half", async () => {
    const { gateway, store, key } = await createTestGateway({ store: open() });
    const all: OrganizationScope = { organizationId: everyOrganization };
    const before = [await gateway.keys.list(all), await leavesOf(store)];
    const { keys } = gateway;
    const one = { organizationId, id: key.id };
    const creation = { organizationId, userId: "user-1", label: "x" };
    for (const [param, wrong] of wrongCreations) {
      const creating = keys.create({ ...creation, ...wrong });
      await expect(creating, `create ${param}`).rejects.toMatchObject(invalid(param));
      if (param === "organizationId" || param === "userId") continue;
      const updating = keys.update({ ...one, ...wrong });
      await expect(updating, `update ${param}`).rejects.toMatchObject(invalid(param));
    }
    for (const param of ["defaultDataClass", "minimumDataClass", "label"] as const) {
      const updating = keys.update({ ...one, [param]: null });
      await expect(updating, param).rejects.toMatchObject(invalid(param));
    }
    for (const overlap of ["1y", "-1s", "", -1, 0.5, Number.NaN, "366d", {}, true])
      await expect(keys.rotate({ ...one, overlap: overlap as "1s" })).rejects.toMatchObject(
        invalid("overlap"),
      );
    for (const call of [keys.get, keys.update, keys.rotate, keys.revoke]) {
      const foreign = { organizationId: "organization-2", id: key.id };
      for (const reference of [{ organizationId, id: "unknown" }, foreign])
        await expect(call(reference)).rejects.toMatchObject({ code: "key_not_found" });
      await expect(call({ organizationId, id: "" })).rejects.toMatchObject(invalid("id"));
      await expect(call({ organizationId } as typeof one)).rejects.toMatchObject(invalid("id"));
      const nobodys = { id: key.id } as typeof one;
      await expect(call(nobodys)).rejects.toMatchObject(invalid("organizationId"));
    }
    const user = { userId: "user-1" };
    // @ts-expect-error a user belongs to one organization
    const ofEveryone = keys.revoke({ ...user, organizationId: everyOrganization });
    await expect(ofEveryone).rejects.toMatchObject(invalid("organizationId"));
    await expect(keys.revoke({ ...one, ...user })).rejects.toMatchObject(invalid("id"));
    await expect(keys.revoke({ organizationId, userId: "" })).rejects.toMatchObject(
      invalid("userId"),
    );
    for (const [param, value] of [
      ["live", "yes"],
      ["label", ""],
      ["userId", 7],
      ["user", "user-1"],
    ] as const)
      await expect(keys.list({ organizationId, [param]: value })).rejects.toMatchObject(
        invalid(param),
      );
    expect([await gateway.keys.list(all), await leavesOf(store)]).toEqual(before);
  });

  it("is over for a revoked key, and an expired key gets no new secret", async () => {
    const { gateway, store, clock, createKey } = await createTestGateway({ store: open() });
    const { key: revoked } = await createKey();
    const { key: expired, chat } = await createKey({ expiresAt: "2026-01-01T00:01:00Z" });
    const [dead, ended] = [revoked, expired].map(({ id }) => ({ organizationId, id })) as [
      { organizationId: string; id: string },
      { organizationId: string; id: string },
    ];
    const first = await gateway.keys.revoke(dead);
    await clock.advance("1m");
    const before = (await leavesOf(store)).length;
    const notLive = { code: "key_not_live" };
    await expect(gateway.keys.rotate(dead)).rejects.toMatchObject(notLive);
    await expect(gateway.keys.update({ ...dead, label: "x" })).rejects.toMatchObject(notLive);
    await expect(gateway.keys.rotate({ ...ended, overlap: "1h" })).rejects.toMatchObject(notLive);
    expect(await gateway.keys.revoke(dead)).toEqual(first);
    expect(await leavesOf(store)).toHaveLength(before);
    expect(await statusOf(gateway.fetch(chat()))).toBe(401);
    await gateway.keys.update({ ...ended, expiresAt: null });
    expect(await statusOf(gateway.fetch(chat()))).toBe(200);
  });
});

const invalid = (param: string) => ({ name: "GatewayError", code: "invalid_argument", param });

const below = { minimumDataClass: "D2_CONFIDENTIAL", defaultDataClass: "D1_INTERNAL" };
const lists = ["a/b/c", [1], ["nothing"], ["a/b/"], ["/b/c"], [`a/b/${"c".repeat(255)}`], {}];
const tooMany = Array.from({ length: 1_001 }, () => "a/b/c");
const wrongCreations: readonly (readonly [string, object])[] = [
  ["organizationId", { organizationId: "" }],
  ["organizationId", { organizationId: everyOrganization }],
  ["userId", { userId: "a\nb" }],
  ["userId", { userId: 7 }],
  ["label", { label: "" }],
  ["label", { label: "x".repeat(256) }],
  ["label", { label: "\ud800" }],
  ["actor", { actor: "" }],
  ["actor", { actor: {} }],
  ["defaultDataClass", below],
  ["defaultDataClass", { defaultDataClass: "D9" }],
  ["defaultDataClass", { defaultDataClass: 1 }],
  ["minimumDataClass", { minimumDataClass: "d1_internal" }],
  ["expiresAt", { expiresAt: "tomorrow" }],
  ["expiresAt", { expiresAt: 7 }],
  ["expiresAt", { expiresAt: "2025-12-31T23:59:59Z" }],
  ["expiresAt", { expiresAt: "2026-01-01T00:00:00Z" }],
  ["models", { models: tooMany }],
  ...lists.map((models) => [Array.isArray(models) ? "models[0]" : "models", { models }] as const),
];

describe.each(stores)("a cached key, with %s", (_name, open) => {
  it("stops working at once for a secret, a model or a class that was removed", async () => {
    const store = open();
    const a = await createTestGateway({ store });
    const b = await createTestGateway({ store, clock: a.clock, ids: countingIds(1) });
    const { key, chat } = await a.createKey();
    const one = { organizationId, id: key.id };
    const ask = async (ids = chat) => {
      const answers = [a, b].map(({ gateway }) => gateway.fetch(ids()));
      return (await Promise.all(answers)).map((answer) => [
        answer.status,
        answer.headers.get("x-service-data-sensitivity"),
      ]);
    };
    const both = (status: number, dataClass: string | null) => Array(2).fill([status, dataClass]);
    expect(await ask()).toEqual(both(200, "D1_INTERNAL"));
    await a.gateway.keys.update({ ...one, defaultDataClass: "D2_CONFIDENTIAL" });
    expect(await ask()).toEqual(both(200, "D2_CONFIDENTIAL"));
    await a.gateway.keys.update({ ...one, minimumDataClass: "D2_CONFIDENTIAL" });
    const header = { "x-service-data-sensitivity": "D1_INTERNAL" };
    expect(await ask(() => chat({}, header))).toEqual(both(400, null));
    await a.gateway.keys.update({ ...one, models: ["other/*/*"] });
    expect(await ask()).toEqual(both(403, "D2_CONFIDENTIAL"));
    await a.gateway.keys.update({ ...one, models: null });
    await a.clock.advance("5s");
    expect(await ask()).toEqual(both(200, "D2_CONFIDENTIAL"));
    const { secret } = await a.gateway.keys.rotate({ ...one, overlap: "1s" });
    expect(await ask()).toEqual(both(200, "D2_CONFIDENTIAL"));
    await a.clock.advance("999ms");
    expect(await ask()).toEqual(both(200, "D2_CONFIDENTIAL"));
    await a.clock.advance("1ms");
    expect(await ask()).toEqual(both(401, null));
    await a.gateway.keys.rotate(one);
    expect(await ask(() => chat({}, { authorization: `Bearer ${secret}` }))).toEqual(
      both(401, null),
    );
  });

  it("is read again if the key changes while a request runs, a limited number of times", async () => {
    const store = open();
    const { gateway, key, chat } = await createTestGateway({ store });
    let changes = 1;
    const busy: Store = {
      ...store,
      async openStep(intent) {
        if (changes-- > 0) {
          const one = { organizationId, id: key.id };
          await gateway.keys.update({ ...one, label: `label ${changes}` });
        }
        return store.openStep(intent);
      },
    };
    const other = await createTestGateway({ store: busy, ids: countingIds(1) });
    expect(await statusOf(other.gateway.fetch(chat()))).toBe(200);
    changes = 100;
    const answer = await other.gateway.fetch(chat());
    expect(JSON.parse(await answer.text()).error.code).toBe("evidence_unavailable");
    expect(changes).toBe(95);
    expect(other.provider.calls).toHaveLength(1);
  });
});

describe("the models of an API key", () => {
  const policy = definePolicy({ rules: [permit("good", { model: "test/good/*" })] });

  it("narrow the policy's permits, and never widen them", async () => {
    const { gateway, clock, createKey } = await createTestGateway({ policy });
    const { key, chat } = await createKey({ models: ["test/good/small", "test/bad/*"] });
    const asked = async (): Promise<readonly number[]> =>
      Promise.all(
        ["good/small", "good/large", "bad/any"].map((name) =>
          statusOf(gateway.fetch(chat({ model: `test/${name}`, messages: hello(name) }))),
        ),
      );
    const patch = async (models: KeyRecord["models"]) => {
      await gateway.keys.update({ organizationId, id: key.id, models });
      await clock.advance("5s");
    };
    expect(await asked()).toEqual([200, 403, 403]);
    await patch(["*/*/*"]);
    expect(await asked()).toEqual([200, 200, 403]);
    await patch(null);
    expect(await asked()).toEqual([200, 200, 403]);
    await patch([]);
    expect(await asked()).toEqual([403, 403, 403]);
  });

  it("are recorded in the decision that denies", async () => {
    const { gateway, createKey } = await createTestGateway({ policy });
    const { chat } = await createKey({ models: ["test/good/small"] });
    const answer = await gateway.fetch(chat({ model: "test/good/large" }));
    const id = answer.headers.get("x-service-policy-decision-id") ?? "";
    const decision = await gateway.decisions.get({ organizationId, id });
    expect(decision).toMatchObject({ effect: "deny", rules: ["key-models"] });
  });
});

const hello = (content: string) => [{ role: "user", content }];
