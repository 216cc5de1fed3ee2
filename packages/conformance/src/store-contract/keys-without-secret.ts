import type { Store } from "@tollgate/core/store";
import { expect } from "vitest";
import { hex, user } from "./chain.ts";
import { type ContractTest, expectOpened } from "./contract-test.ts";
import type { Intents } from "./intents.ts";
import type { SharedTest } from "./shared-responses.ts";

const wholePage = { cursor: null, limit: 100 };

/** Keys without a secret: one for each organization, user and label, created on first use. */
export function keyWithoutSecretTests(test: ContractTest): void {
  test("creates a key without a secret once, and finds it from then on", async ({
    store,
    intents,
  }) => {
    const first = entry(intents, "ensured-1");
    const { key, salt } = await store.keys.ensure(first);
    expect(key).toEqual(first.key);
    expect(hex(salt)).toBe(hex(intents.salt));
    const again = await store.keys.ensure(entry(intents, "ensured-2", { minimumDataClass: "D2" }));
    expect(again.key).toEqual(first.key);
    expect(await store.keys.get("acme", "ensured-2")).toBeNull();
    expect(await created(store, "acme")).toBe(2);
  });

  test("keeps a separate key for each organization, user and label", async ({ store, intents }) => {
    const entries = [
      entry(intents, "a"),
      entry(intents, "b", { label: "other" }),
      entry(intents, "c", { userId: "bob" }),
      entry(intents.withOwner({ organizationId: "globex" }), "a", { organizationId: "globex" }),
    ];
    for (const one of entries) expect((await store.keys.ensure(one)).key).toEqual(one.key);
    const globex = await store.keys.ensure(entry(intents, "d", { organizationId: "globex" }));
    expect(hex(globex.salt)).toBe(hex(intents.withOwner({ organizationId: "globex" }).salt));
  });

  test("finds a revoked key, and creates no replacement", async ({ store, intents }) => {
    const { key } = await store.keys.ensure(entry(intents, "ensured-1"));
    const change = { patch: { revokedAt: 7 }, leaf: intents.leaf("key.revoked") };
    await store.keys.change({ organizationId: "acme", id: key.id }, () => change);
    const again = await store.keys.ensure(entry(intents, "ensured-2"));
    expect(again.key).toEqual({ ...key, revokedAt: 7, version: 1 });
  });

  test("ignores keys with a secret, even with the same label", async ({ store, intents }) => {
    const { key } = intents.key();
    const made = await store.keys.ensure(entry(intents, "ensured-1", { label: key.label }));
    expect(made.key.id).toBe("ensured-1");
  });

  test("creates one key and one leaf for many concurrent calls", async ({ store, intents }) => {
    const many = Array.from({ length: 16 }, (_, at) => entry(intents, `ensured-${at}`));
    const found = await Promise.all(many.map((one) => store.keys.ensure(one)));
    expect(new Set(found.map(({ key }) => key.id)).size).toBe(1);
    expect(await created(store, "acme")).toBe(2);
  });

  test("opens Steps with such a key until it is revoked", async ({ store, intents }) => {
    await store.keys.ensure(entry(intents, "ensured-1"));
    const own = intents.withOwner({ keyId: "ensured-1" });
    await expectOpened(store.openStep(own.step([user("a")])));
    const change = { patch: { revokedAt: 1 }, leaf: intents.leaf("key.revoked") };
    await store.keys.change({ organizationId: "acme", id: "ensured-1" }, () => change);
    const refused = await store.openStep(own.step([user("b")]));
    expect(refused).toMatchObject({ refusal: { code: "invalid_api_key" } });
  });
}

/** The same with several stores on the same data. */
export function sharedKeyWithoutSecretTests(test: SharedTest): void {
  test("creates one key without a secret for concurrent calls of several stores", async ({
    store,
    intents,
    another,
  }) => {
    const stores = [store, await another(), await another()];
    for (let round = 0; round < 4; round++) {
      // Each round uses a new organization, which has no salt yet.
      const own = intents.withOwner({ organizationId: `organization-${round}` });
      const found = await Promise.all(
        Array.from({ length: 12 }, (_, at) =>
          (stores[at % stores.length] ?? store).keys.ensure({
            ...entry(own, `ensured-${at}`, { organizationId: own.owner.organizationId }),
            salt: new Uint8Array(32).fill(at),
          }),
        ),
      );
      expect(new Set(found.map(({ key }) => key.id)).size).toBe(1);
      expect(new Set(found.map(({ salt }) => hex(salt))).size).toBe(1);
      expect(await created(store, own.owner.organizationId)).toBe(1);
    }
  });
}

function entry(intents: Intents, id: string, overrides: object = {}) {
  const plain = { label: "web", prefix: "", ...overrides };
  const { digest: _digest, ...rest } = intents.withOwner({ keyId: id }).key(plain);
  return rest;
}

async function created(store: Store, organizationId: string): Promise<number> {
  const { data } = await store.evidence.list({ organizationId }, wholePage);
  return data.filter(({ kind }) => kind === "key.created").length;
}
