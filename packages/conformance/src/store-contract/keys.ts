import type { EvidenceLeaf, KeyRotation, Store } from "@tollgate/core/store";
import { expect } from "vitest";
import { hex, sha256 } from "./chain.ts";
import type { ContractTest } from "./contract-test.ts";
import type { Intents } from "./intents.ts";

const organizationId = "acme";
const digest = sha256("secret");

/** API keys: found by digest, rotated with an overlap, and touched. */
export function keyTests(test: ContractTest): void {
  test("reads a key back complete, with and without limits", async ({ store, intents }) => {
    const limited = intents.withOwner({ keyId: "key-2" }).key({
      models: ["sim/*/*", "other/v/m"],
      aliases: { "gpt-5": "sim/v/gpt-5", constructor: "sim/v/m" },
      leadingSystem: "history",
      expiresAt: intents.now(),
      revokedAt: intents.now(),
      lastUsedAt: intents.now(),
    });
    await store.keys.insert(limited);
    const plain = intents.withOwner({ keyId: "key-3" }).key({ prefix: "", models: [] });
    await store.keys.insert(plain);
    for (const { key } of [limited, plain])
      expect(await store.keys.get(organizationId, key.id)).toEqual(key);
  });

  test("finds a key by its secret's digest, live or not, with the organization's salt", async ({
    store,
    intents,
  }) => {
    const entry = intents.withOwner({ keyId: "key-2" }).key({ revokedAt: 1 }, digest);
    // The organization already has a salt from its first key, so this one is ignored.
    await store.keys.insert({ ...entry, salt: sha256("another") });
    const found = await store.keys.findByDigest(digest, intents.now());
    expect(found?.key).toEqual(entry.key);
    expect(hex(found?.salt)).toBe(hex(intents.salt));
    expect(await store.keys.findByDigest(sha256("guess"), intents.now())).toBeNull();
    expect(await store.keys.findByDigest(new Uint8Array(), intents.now())).toBeNull();
  });

  test("never moves a secret to another key", async ({ store, intents }) => {
    await store.keys.insert(intents.withOwner({ keyId: "key-2" }).key({}, digest));
    const thief = intents.withOwner({ keyId: "key-3" }).key({}, digest);
    await expect(store.keys.insert(thief)).rejects.toThrow();
    expect(await store.keys.get(organizationId, "key-3")).toBeNull();
    const found = await store.keys.findByDigest(digest, intents.now());
    expect(found?.key.id).toBe("key-2");
  });

  test("changes nothing if a key is inserted again", async ({ store, intents }) => {
    const entry = intents.withOwner({ keyId: "key-2" }).key({}, digest);
    await Promise.all([store.keys.insert(entry), store.keys.insert(entry)]);
    await store.keys.insert({ ...entry, digest: sha256("other") });
    expect(await store.keys.findByDigest(sha256("other"), intents.now())).toBeNull();
    const page = await store.keys.list({ organizationId }, { cursor: null, limit: 9 });
    expect(page.data.map(({ id }) => id)).toEqual(["key-2", "key-1"]);
    expect(await leavesOf(store)).toHaveLength(2);
  });

  test("ends a rotated key's old secrets after the overlap, but never later than before", async ({
    store,
    intents,
  }) => {
    const secrets = [digest, sha256("second"), sha256("third")] as const;
    await store.keys.insert(intents.withOwner({ keyId: "key-2" }).key({}, secrets[0]));
    const rotate = async (next: Uint8Array, oldSecretsEnd: number) =>
      (await store.keys.rotate({ ...rotation(intents), digest: next, oldSecretsEnd }))?.prefix;
    const working = async (at: number): Promise<readonly boolean[]> => {
      const found = secrets.map((secret) => store.keys.findByDigest(secret, at));
      return (await Promise.all(found)).map((entry) => entry?.key.id === "key-2");
    };
    expect(await rotate(secrets[1], 5_000)).toBe("tg_next");
    expect(await working(4_999)).toEqual([true, true, false]);
    expect(await working(5_000)).toEqual([false, true, false]);
    expect((await store.keys.findByDigest(secrets[0], 0))?.secretEndsAt).toBe(5_000);
    expect(await rotate(secrets[2], 9_000)).toBe("tg_next");
    expect(await rotate(secrets[2], 9_000)).toBe("tg_next");
    expect((await store.keys.findByDigest(secrets[2], 0))?.key.version).toBe(2);
    expect(await working(5_000)).toEqual([false, true, true]);
    expect(await working(9_000)).toEqual([false, false, true]);
    expect((await store.keys.findByDigest(secrets[0], 0))?.secretEndsAt).toBe(5_000);
    expect((await store.keys.findByDigest(secrets[2], 0))?.secretEndsAt).toBeNull();
    expect((await store.keys.get(organizationId, "key-2"))?.prefix).toBe("tg_next");
  });

  test("does not rotate a key that is revoked, expired or without a secret", async ({
    store,
    intents,
  }) => {
    const at = intents.now();
    const kinds = [{ revokedAt: at }, { expiresAt: at }, { prefix: "" }];
    for (const [place, kind] of kinds.entries()) {
      const keyId = `dead-${place}`;
      const entry = intents
        .withOwner({ keyId })
        .key(kind, kind.prefix === "" ? null : sha256(keyId));
      await store.keys.insert(entry);
      expect(await store.keys.rotate({ ...rotation(intents), id: keyId, at })).toBeNull();
      expect(await store.keys.get(organizationId, keyId)).toEqual(entry.key);
    }
    expect(await store.keys.findByDigest(digest, 0)).toBeNull();
    expect(await leavesOf(store)).toHaveLength(1 + kinds.length);
  });

  test("does not change a key that doesn't exist or belongs to another organization", async ({
    store,
    intents,
  }) => {
    const before = await store.keys.get(organizationId, "key-1");
    const foreign = [
      { organizationId, id: "key-9" },
      { organizationId: "globex", id: "key-1" },
    ];
    for (const place of foreign) {
      const change = { patch: { label: "x" }, leaf: intents.leaf("key.updated") };
      expect(await store.keys.change(place, () => change)).toBeNull();
      expect(await store.keys.rotate({ ...rotation(intents), ...place })).toBeNull();
      await store.keys.touch([{ organizationId: place.organizationId, keyId: place.id, at: 9 }]);
    }
    expect(await store.keys.get(organizationId, "key-1")).toEqual(before);
    expect(await store.keys.findByDigest(digest, 0)).toBeNull();
    expect(await leavesOf(store)).toHaveLength(1);
  });

  test("never moves a key's last use back", async ({ store }) => {
    const touch = (...times: number[]): Promise<void> =>
      store.keys.touch(times.map((at) => ({ organizationId, keyId: "key-1", at })));
    const lastUse = async () => (await store.keys.get(organizationId, "key-1"))?.lastUsedAt;
    await touch();
    expect(await lastUse()).toBeNull();
    await touch(5_000, 7_000, 6_000);
    expect(await lastUse()).toBe(7_000);
    await touch(1_000);
    expect(await lastUse()).toBe(7_000);
  });
}

/** Rotates `key-2` without overlap. */
function rotation(intents: Intents): KeyRotation {
  const leaf = intents.leaf("key.rotated");
  const times = { at: 0, oldSecretsEnd: 0 };
  return { organizationId, id: "key-2", digest, prefix: "tg_next", leaf, ...times };
}

async function leavesOf(store: Store): Promise<readonly EvidenceLeaf[]> {
  return (await store.evidence.list({ organizationId }, { cursor: null, limit: 99 })).data;
}
