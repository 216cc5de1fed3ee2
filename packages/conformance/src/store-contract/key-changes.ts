import type { ApiKey, KeyName, KeyPatch, KeyQuery, Store } from "@tollgate/core/store";
import { expect } from "vitest";
import type { ContractTest } from "./contract-test.ts";
import type { Intents } from "./intents.ts";

const organizationId = "acme";
const wholePage = { cursor: null, limit: 100 };

/** Changes to a key, based on its state when the change is written. */
export function keyChangeTests(test: ContractTest): void {
  test("changes only the given fields of a key", async ({ store, intents }) => {
    const before = await store.keys.get(organizationId, "key-1");
    const patch = {
      label: "renamed \u{1f511}",
      defaultDataClass: "D2_CONFIDENTIAL",
      minimumDataClass: "D1_INTERNAL",
      models: ["sim/*/*"],
      aliases: { fast: "sim/v/m", "openai/gpt-5": "sim/v/gpt-5" },
      leadingSystem: "apart" as const,
      expiresAt: intents.now(),
      revokedAt: intents.now(),
    };
    const one = { organizationId, id: "key-1" };
    const after = { ...before, ...patch, version: 1 };
    expect(await changed(store, intents, one, patch)).toEqual(after);
    const ends = { expiresAt: null, revokedAt: null };
    const cleared = { models: null, aliases: null, leadingSystem: null, ...ends };
    await changed(store, intents, one, cleared);
    expect(await store.keys.get(organizationId, "key-1")).toEqual({
      ...after,
      ...cleared,
      version: 2,
    });
    expect(await leafKinds(store)).toEqual(["key.created", "key.updated", "key.updated"]);
  });

  test("leaves a key unchanged if the callback returns no change", async ({ store }) => {
    const before = await store.keys.get(organizationId, "key-1");
    expect(await store.keys.change({ organizationId, id: "key-1" }, () => null)).toBeNull();
    expect(await store.keys.get(organizationId, "key-1")).toEqual(before);
    expect(await leafKinds(store)).toEqual(["key.created"]);
  });

  test("changes only the key with this organization and id", async ({ store, intents }) => {
    await insertKeys(store, intents);
    const before = (await store.keys.list({ organizationId: null }, wholePage)).data;
    const key = await changed(store, intents, { organizationId, id: "key-2" }, { revokedAt: 7 });
    expect(key).toMatchObject({ id: "key-2", revokedAt: 7 });
    const { data } = await store.keys.list({ organizationId: null }, wholePage);
    expect(data).toEqual(before.map((row) => (row.id === "key-2" ? key : row)));
    expect(await changed(store, intents, { organizationId, id: "nothing" }, {})).toBeNull();
  });

  test("writes nothing if the callback throws", async ({ store }) => {
    const before = await store.keys.get(organizationId, "key-1");
    const decide = () => {
      throw new TypeError("not this one");
    };
    const changing = store.keys.change({ organizationId, id: "key-1" }, decide);
    await expect(changing).rejects.toThrow("not this one");
    expect(await store.keys.get(organizationId, "key-1")).toEqual(before);
    expect(await leafKinds(store)).toEqual(["key.created"]);
  });

  test("bases each of several concurrent changes of a key on the one before", async ({
    store,
    intents,
  }) => {
    const one = { organizationId, id: "key-1" };
    const extend = () =>
      store.keys.change(one, ({ label }) => ({
        patch: { label: `${label}+` },
        leaf: intents.leaf("key.updated"),
      }));
    await Promise.all(Array.from({ length: 8 }, extend));
    const key = await store.keys.get(organizationId, "key-1");
    expect(key).toMatchObject({ label: `label of key-1${"+".repeat(8)}`, version: 8 });
  });

  test("lists keys by user, by label, and by whether they are live at a time", async ({
    store,
    intents,
  }) => {
    await insertKeys(store, intents);
    const at = intents.now();
    const ended: readonly Partial<ApiKey>[] = [{ revokedAt: at }, { expiresAt: at }];
    for (const [place, end] of ended.entries())
      await store.keys.insert(
        intents.withOwner({ keyId: `ended-${place}`, userId: "eve" }).key(end),
      );
    const listed = async (query: Omit<KeyQuery, "organizationId">) =>
      (await store.keys.list({ organizationId, ...query }, wholePage)).data.map(({ id }) => id);
    expect(await listed({ userId: "ada" })).toEqual(["key-3", "key-2", "key-1"]);
    expect(await listed({ label: "label of key-2" })).toEqual(["key-2"]);
    expect(await listed({ userId: "eve", label: "label of key-2" })).toEqual([]);
    expect(await listed({ live: { at, is: false } })).toEqual(["ended-1", "ended-0"]);
    expect(await listed({ live: { at: at - 1, is: false } })).toEqual([]);
    const others = ["key-4", "key-3", "key-2", "key-1"];
    expect(await listed({ live: { at, is: true } })).toEqual(others);
    expect(await listed({ live: { at: at - 1, is: true } })).toHaveLength(6);
    expect(await listed({ userId: "eve", live: { at, is: true } })).toEqual([]);
  });
}

/** Two more keys of the first user, one of another user, and one of an equally named user of another organization. */
async function insertKeys(store: Store, intents: Intents): Promise<void> {
  const owners = [
    { keyId: "key-2" },
    { keyId: "key-3" },
    { keyId: "key-4", userId: "bob" },
    { keyId: "key-1", organizationId: "globex" },
  ];
  for (const owner of owners) await store.keys.insert(intents.withOwner(owner).key());
}

function changed(
  store: Store,
  intents: Intents,
  name: KeyName,
  patch: KeyPatch,
): Promise<ApiKey | null> {
  return store.keys.change(name, () => ({ patch, leaf: intents.leaf("key.updated") }));
}

async function leafKinds(store: Store): Promise<readonly string[]> {
  return (await store.evidence.list({ organizationId }, wholePage)).data.map(({ kind }) => kind);
}
