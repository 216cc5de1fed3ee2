import { randomBytes } from "node:crypto";
import { createGateway, GatewayError, type SecretKeys } from "@tollgate/core";
import { memoryStore } from "@tollgate/store-memory";
import { scriptedProvider } from "@tollgate/testing";
import { expect, it } from "vitest";

const key = () => randomBytes(32).toString("base64");
const k1 = key();

/** The problems of a gateway with a customer-owned provider and these secrets. JavaScript can pass any value. */
function problemsOf(secrets: unknown): string {
  const own = { ...scriptedProvider().at("own"), connection: "customer" as const };
  try {
    createGateway({
      store: memoryStore(),
      providers: { own },
      ...(secrets === undefined ? {} : { secrets: secrets as SecretKeys }),
    });
  } catch (error) {
    if (error instanceof GatewayError && error.code === "invalid_configuration")
      return error.message;
    throw error;
  }
  return "";
}

it("accepts 32-byte keys in base64, and the host's own box", () => {
  expect(problemsOf({ current: "k1", keys: { k1 } })).toBe("");
  expect(problemsOf({ current: "k-2_b.c", keys: { k1, "k-2_b.c": key() } })).toBe("");
  const wrap = () => ({ keyId: "arn:key/1", wrapped: Uint8Array.of(1) });
  const box = { contract: 1, current: "arn:key/1", wrap, unwrap: () => new Uint8Array(32) };
  expect(problemsOf(box)).toBe("");
});

it.each([
  ["no secrets", undefined, "`secrets` is required: gateway own is customer-owned."],
  ["null", null, "`secrets` must be { current, keys } or a SecretBox."],
  ["text", k1, "`secrets` must be { current, keys } or a SecretBox."],
  ["an empty object", {}, "secrets must be { current, keys }."],
  ["no keys", { current: "k1", keys: {} }, "secrets.keys must name at least one key."],
  ["an unknown current key", { current: "k2", keys: { k1 } }, "secrets.current must name"],
  [
    "a current key named like a member of Object",
    { current: "toString", keys: { k1 } },
    "secrets.current must name",
  ],
  ["no current key", { keys: { k1 } }, "secrets.current must name one of secrets.keys."],
  ["a wrong name", { current: "a b", keys: { "a b": k1 } }, "secrets.keys: names must be 1 to 32"],
  ["one key twice", { current: "k1", keys: { k1, k2: k1 } }, "the same key under two names"],
  [
    "a box without unwrap",
    { contract: 1, current: "k", wrap: () => {} },
    "`secrets` must be a SecretBox of contract 1",
  ],
  [
    "a box of another contract",
    { contract: 2, current: "k", wrap: () => {}, unwrap: () => {} },
    "`secrets` must be a SecretBox of contract 1",
  ],
])("rejects %s at start", (_name, secrets, message) => {
  expect(problemsOf(secrets)).toContain(message);
});

it.each([
  ["missing", undefined],
  ["empty", ""],
  ["short", randomBytes(31).toString("base64")],
  ["long", randomBytes(33).toString("base64")],
  ["not base64", "x".repeat(44)],
  ["in hex", randomBytes(32).toString("hex")],
  ["in base64url", Buffer.alloc(32, 0xfb).toString("base64url")],
  ["followed by a line end", `${key()}\n`],
  ["a number", 1],
])("rejects a key that is %s at start", (_name, k2) => {
  expect(problemsOf({ current: "k1", keys: { k1, k2 } })).toBe(
    "secrets.keys.k2 must be 32 bytes in base64.",
  );
});

it("names every problem at once, and never a key, even in place of a name", () => {
  const message = problemsOf({ current: key(), keys: { [k1]: "k1", k2: "" } });
  expect(message.split("\n")).toHaveLength(3);
  expect(message).not.toContain(k1.slice(0, 8));
});

it("isn't required without a customer-owned gateway, but is still checked", () => {
  const providers = { test: scriptedProvider() };
  expect(() => createGateway({ store: memoryStore(), providers })).not.toThrow();
  const secrets = { current: "k1", keys: { k1: "short" } };
  expect(() => createGateway({ store: memoryStore(), providers, secrets })).toThrow("32 bytes");
});
