import type { ConnectionQuery, SealedConnection, Store } from "@tollgate/core/store";
import { expect, vi } from "vitest";
import { sha256 } from "./chain.ts";
import type { ContractTest } from "./contract-test.ts";

const organizationId = "acme";
const place = { organizationId, gateway: "own" };
const whole = { cursor: null, limit: 100 };

/** A connection with bytes that are not valid text. */
export function sealed(overrides: Partial<SealedConnection> = {}): SealedConnection {
  return {
    id: "connection-1",
    ...place,
    createdAt: 1_000,
    updatedAt: 2_000,
    keyId: "k1",
    wrappedKey: Uint8Array.of(0, 255, 128, 10),
    credential: sha256("sealed"),
    ...overrides,
  };
}

/** Customer-owned connections: setting, replacing, listing, removing and rewrapping. */
export function connectionTests(test: ContractTest): void {
  test("reads a connection back byte for byte", async ({ store, intents }) => {
    const connection = sealed({ wrappedKey: new Uint8Array(), credential: Uint8Array.of(0) });
    await store.connections.set({ connection, leaf: intents.leaf("connection.set") });
    expect(await read(store)).toEqual(plain(connection));
    expect(await listed(store, { organizationId })).toEqual([plain(connection)]);
    expect(await store.connections.get(organizationId, "other")).toBeNull();
  });

  test("replaces a connection, and changes nothing if it is the same", async ({
    store,
    intents,
  }) => {
    const first = intents.leaf("connection.set");
    await store.connections.set({ connection: sealed(), leaf: first });
    await store.connections.set({ connection: sealed(), leaf: first });
    const other = sealed({
      id: "connection-2",
      createdAt: 3_000,
      updatedAt: 4_000,
      keyId: "k2",
      wrappedKey: sha256("other wrap"),
      credential: sha256("other"),
    });
    const second = intents.leaf("connection.set");
    await store.connections.set({ connection: other, leaf: second });
    expect(await read(store)).toEqual(plain(other));
    expect(await leavesOf(store)).toEqual([first.id, second.id]);
  });

  test("removes a connection once, and only if its id matches", async ({ store, intents }) => {
    await store.connections.set({ connection: sealed(), leaf: intents.leaf("connection.set") });
    const remove = (of: Partial<Parameters<Store["connections"]["remove"]>[0]>) =>
      store.connections.remove({
        ...place,
        id: "connection-1",
        ...of,
        leaf: intents.leaf("connection.removed"),
      });
    expect(await remove({ organizationId: "globex" })).toBe(false);
    expect(await remove({ gateway: "other" })).toBe(false);
    expect(await remove({ id: "connection-2" })).toBe(false);
    const check = vi.fn();
    expect(await remove({ id: "connection-2", check })).toBe(false);
    expect(check).not.toHaveBeenCalled();
    expect(await read(store)).not.toBeNull();
    expect(await remove({})).toBe(true);
    expect(await remove({})).toBe(false);
    expect(await read(store)).toBeNull();
    expect(await leavesOf(store)).toHaveLength(2);
  });

  test("rewraps a data key only if its wrapping hasn't changed since it was read", async ({
    store,
    intents,
  }) => {
    await store.connections.set({ connection: sealed(), leaf: intents.leaf("connection.set") });
    const leaf = intents.leaf("connection.resealed");
    const to = { keyId: "k2", wrappedKey: sha256("new wrap") };
    const change = { ...place, from: sealed().wrappedKey, to, leaf };
    const wrong = { ...change, from: sha256("never was") };
    expect(await store.connections.rewrap(wrong)).toBe(false);
    expect(await store.connections.rewrap({ ...change, gateway: "other" })).toBe(false);
    expect(await store.connections.rewrap({ ...change, organizationId: "globex" })).toBe(false);
    expect(await read(store)).toEqual(plain(sealed()));
    expect(await store.connections.rewrap(change)).toBe(true);
    expect(await store.connections.rewrap(change)).toBe(true);
    expect(await read(store)).toEqual(plain(sealed(to)));
    expect((await leavesOf(store)).slice(1)).toEqual([leaf.id]);
  });

  test("lets one of several concurrent rewraps of a data key win", async ({ store, intents }) => {
    await store.connections.set({ connection: sealed(), leaf: intents.leaf("connection.set") });
    const from = sealed().wrappedKey;
    const outcomes = await Promise.all(
      ["a", "b", "c"].map((wrap) => {
        const to = { keyId: "k2", wrappedKey: sha256(wrap) };
        const leaf = intents.leaf("connection.resealed");
        return store.connections.rewrap({ ...place, from, to, leaf });
      }),
    );
    expect(outcomes.filter((rewrapped) => rewrapped)).toHaveLength(1);
    expect(await leavesOf(store)).toHaveLength(2);
  });

  test("lists connections by organization and gateway, and can leave out one wrapping key", async ({
    store,
    intents,
  }) => {
    const places = [
      ["b", "z"],
      ["a\u{1f600}", "m"],
      ["a\uffee", "m"],
      ["a", "z"],
      ["a", "B"],
      ["a", "b"],
    ] as const;
    for (const [organization, gateway] of places) {
      const keyId = gateway === "z" ? "k2" : "k1";
      const connection = sealed({ organizationId: organization, gateway, keyId });
      await store.connections.set({ connection, leaf: intents.leaf("connection.set") });
    }
    const names = async (query: ConnectionQuery) =>
      (await listed(store, query)).map((row) => `${row?.organizationId} ${row?.gateway}`);
    const all = ["a B", "a b", "a z", "a\uffee m", "a\u{1f600} m", "b z"];
    expect(await names({ organizationId: null })).toEqual(all);
    expect(await names({ organizationId: "a" })).toEqual(["a B", "a b", "a z"]);
    expect(await names({ organizationId: null, notWrappedBy: "k2" })).toEqual(
      all.filter((name) => !name.endsWith("z")),
    );
    expect(await names({ organizationId: "b", notWrappedBy: "k2" })).toEqual([]);
    expect(await names({ organizationId: "c" })).toEqual([]);
  });

  test("keeps the credentials of organizations with the same gateway apart", async ({
    store,
    intents,
  }) => {
    const theirs = sealed({ organizationId: "globex", credential: sha256("theirs") });
    for (const connection of [sealed(), theirs])
      await store.connections.set({ connection, leaf: intents.leaf("connection.set") });
    const leaf = intents.leaf("connection.removed");
    await store.connections.remove({ ...place, id: "connection-1", leaf });
    expect(await read(store)).toBeNull();
    expect(plain(await store.connections.get("globex", "own"))).toEqual(plain(theirs));
    expect(await store.connections.get("", "own")).toBeNull();
  });
}

async function read(store: Store) {
  return plain(await store.connections.get(organizationId, "own"));
}

async function listed(store: Store, query: ConnectionQuery) {
  return (await store.connections.list(query, whole)).data.map(plain);
}

/** Converts bytes to text, so that any kind of view compares. */
function plain(connection: SealedConnection | null) {
  if (connection === null) return null;
  const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
  return {
    ...connection,
    credential: hex(connection.credential),
    wrappedKey: hex(connection.wrappedKey),
  };
}

/** The leaves of connections. */
async function leavesOf(store: Store): Promise<readonly string[]> {
  const { data } = await store.evidence.list({ organizationId }, whole);
  return data.filter(({ kind }) => kind.startsWith("connection.")).map(({ id }) => id);
}
