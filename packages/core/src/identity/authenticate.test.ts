import { describe, expect, it } from "vitest";
import type { KeyOfSecret } from "../contracts/key-repository.ts";
import type { ApiKey } from "../domain/api-key.ts";
import { createAuthenticator, invalidApiKey } from "./authenticate.ts";
import { createKeyCache } from "./key-cache.ts";
import { createSecret, displayPrefix, isSecretForm } from "./secret.ts";

const bytes = (byte: number) => ({ uuid: () => "", bytes: () => new Uint8Array(32).fill(byte) });
const [secret, other] = [createSecret(bytes(7)), createSecret(bytes(8))];
const named = {
  organizationId: "acme",
  userId: "ada",
  label: "app",
  source: "app",
  defaultDataClass: null,
  minimumDataClass: null,
  models: null,
  aliases: null,
  leadingSystem: null,
};

/** An authenticator whose store has one key. It counts the reads of the store and the uses of the key. */
function authenticating(changed: Partial<ApiKey> = {}, secretEndsAt: number | null = null) {
  const state = { now: 1_000, reads: 0, uses: 0, found: true };
  const key: ApiKey = {
    id: "k",
    organizationId: "acme",
    userId: "ada",
    label: "app",
    prefix: "tg_abcd",
    defaultDataClass: "D1",
    minimumDataClass: "D0",
    models: ["a/b/c"],
    aliases: null,
    leadingSystem: null,
    createdAt: 0,
    expiresAt: null,
    revokedAt: null,
    lastUsedAt: null,
    version: 3,
    ...changed,
  };
  const read = async (): Promise<KeyOfSecret | null> => {
    state.reads++;
    return state.found ? { key, salt: new Uint8Array(32), secretEndsAt } : null;
  };
  const ensure = async () => {
    state.reads++;
    return { key, salt: new Uint8Array(32) };
  };
  const clock = { now: () => state.now, monotonic: () => state.now, after: () => () => {} };
  const authenticator = createAuthenticator({
    keys: { findByDigest: read } as never,
    cache: createKeyCache(clock),
    clock,
    dataClasses: ["D0", "D1"],
    ensure,
    used: () => {
      state.uses++;
    },
  });
  return { ...authenticator, state };
}

const invalid = { code: "invalid_api_key" };

describe("authentication", () => {
  it("reads a key at most once in five seconds, and notes each use", async () => {
    const { authenticate, state } = authenticating();
    const caller = await authenticate({ token: secret });
    expect(caller).toMatchObject({
      organizationId: "acme",
      userId: "ada",
      keyId: "k",
      keyLabel: "app",
      keyVersion: 3,
      source: "api",
      defaultDataClass: "D1",
      minimumDataClass: "D0",
      allowlists: [["a/b/c"]],
    });
    state.now += 4_999;
    expect(authenticate({ token: secret })).toBe(caller);
    expect(state).toMatchObject({ reads: 1, uses: 2 });
    state.now += 1;
    await authenticate({ token: secret });
    expect(state).toMatchObject({ reads: 2, uses: 3 });
  });

  it("reads the key of a caller that the host names as seldom", async () => {
    const { authenticate, state } = authenticating({ models: null });
    const caller = await authenticate({ named });
    expect(caller).toMatchObject({ source: "app", allowlists: [] });
    expect(authenticate({ named })).toBe(caller);
    expect(await authenticate({ named: { ...named, models: ["x/y/z"] } })).toMatchObject({
      allowlists: [["x/y/z"]],
    });
    expect(state).toMatchObject({ reads: 1, uses: 3 });
  });

  it("always reads afresh for a request that opens no Step", async () => {
    const { authenticateFresh, state } = authenticating();
    for (let time = 0; time < 2; time++) await authenticateFresh({ token: secret });
    for (let time = 0; time < 2; time++) await authenticateFresh({ named });
    expect(state).toMatchObject({ reads: 4, uses: 4 });
  });

  it.each([
    ["expires", { expiresAt: 3_000 }, null],
    ["has an old secret whose overlap ends", {}, 3_000],
  ])("rejects a cached key from the moment it %s", async (_, changed, secretEndsAt) => {
    const { authenticate, state } = authenticating(changed, secretEndsAt);
    await authenticate({ token: secret });
    state.now = 2_999;
    await authenticate({ token: secret });
    state.now = 3_000;
    expect(() => authenticate({ token: secret })).toThrow(invalidApiKey());
    // It is no longer cached either.
    await expect(authenticate({ token: secret })).rejects.toMatchObject(invalid);
    expect(state).toMatchObject({ reads: 2, uses: 2 });
  });

  it("forgets a key that a fresh read no longer finds", async () => {
    const { authenticate, authenticateFresh, state } = authenticating();
    await authenticate({ token: secret });
    state.found = false;
    await expect(authenticateFresh({ token: secret })).rejects.toMatchObject(invalid);
    await expect(authenticate({ token: secret })).rejects.toMatchObject(invalid);
    expect(state).toMatchObject({ reads: 3, uses: 1 });
  });

  it("reads nothing for a missing or malformed key", () => {
    const { authenticate, state } = authenticating();
    expect(() => authenticate({ token: null })).toThrow("Missing API key.");
    for (const token of ["", "tg_", `${secret}0`, `${secret.slice(0, -1)}-`])
      expect(() => authenticate({ token }), token).toThrow(invalidApiKey());
    expect(state).toMatchObject({ reads: 0, uses: 0 });
  });
});

it("a key cache keeps ten thousand keys, and drops the oldest", () => {
  const clock = { now: () => 0, monotonic: () => 0, after: () => () => {} };
  const cache = createKeyCache(clock);
  const found = { key: { models: null }, salt: new Uint8Array(), secretEndsAt: null } as never;
  for (let key = 0; key < 10_000; key++) cache.set(`${key}`, found);
  expect(cache.get("0")).not.toBeNull();
  cache.set("next", found);
  expect([cache.get("0"), cache.get("1"), cache.get("next")].map((key) => key === null)).toEqual([
    true,
    false,
    false,
  ]);
  cache.drop("next");
  expect(cache.get("next")).toBeNull();
});

it("a secret is tg_, 43 random characters and a checksum of 6", () => {
  expect(secret).toMatch(/^tg_[0-9A-Za-z]{49}$/);
  expect(isSecretForm(secret)).toBe(true);
  expect(displayPrefix(secret)).toBe(secret.slice(0, 7));
  const mixed = secret.slice(0, 46) + other.slice(46);
  expect(isSecretForm(mixed)).toBe(false);
  // Of all ones in bits, and of none.
  expect(createSecret(bytes(0))).toMatch(/^tg_0{43}/);
  expect(createSecret(bytes(255))).toMatch(/^tg_[1-9A-Za-z]/);
  expect(secret).not.toBe(other);
});
