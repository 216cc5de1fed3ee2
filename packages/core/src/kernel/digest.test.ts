import { createHash } from "node:crypto";
import { expect, it } from "vitest";
import { sameDigest, sha256InTurns, sha256Of } from "./digest.ts";

const hashOf = (...parts: readonly (string | Uint8Array)[]): Buffer =>
  createHash("sha256")
    .update(Buffer.concat(parts.map((part) => Buffer.from(part))))
    .digest();

it.each<readonly [string, readonly (string | Uint8Array)[]]>([
  ["nothing", []],
  ["a text", ["a\u00e9\u20ac\u{1f600}"]],
  ["bytes and texts", [Uint8Array.of(0), "\u20ac", Uint8Array.of(1, 2), "a", ""]],
  ["a text that fits exactly", ["\u20ac".repeat(21_845), Uint8Array.of(7)]],
  ["bytes that fit exactly", [new Uint8Array(65_535).fill(3), Uint8Array.of(4)]],
  ["a byte more", [new Uint8Array(65_536).fill(3), Uint8Array.of(4)]],
  ["a text of many bytes", ["x", "\u20ac".repeat(40_000), "y"]],
])("several parts have one digest: %s", (_, parts) => {
  expect(sha256Of(...parts)).toEqual(hashOf(...parts));
});

it("many bytes are digested in turns", async () => {
  const bytes = Buffer.alloc(9_000_000, "ab");
  expect(await sha256InTurns("head", bytes)).toEqual(hashOf("head", bytes));
});

it("digests are the same if all their bytes are", () => {
  const digest = hashOf("a");
  expect(sameDigest(digest, hashOf("a"))).toBe(true);
  for (const other of [hashOf("b"), digest.subarray(1), Buffer.alloc(0)])
    expect(sameDigest(digest, other)).toBe(false);
});
