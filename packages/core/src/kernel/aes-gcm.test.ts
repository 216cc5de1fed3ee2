import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { expect, it } from "vitest";
import { decrypt, encrypt } from "./aes-gcm.ts";

const key = new Uint8Array(32).fill(7);
const context = Buffer.from("place");
const lock = { key, context };
const bytes = fc.uint8Array({ maxLength: 64 });

it("decrypts with the same key and context", () => {
  fc.assert(
    fc.property(bytes, bytes, (plain, place) => {
      const own = { key, context: place };
      expect(new Uint8Array(decrypt(encrypt(plain, own, randomBytes), own))).toEqual(plain);
    }),
  );
});

it("rejects a ciphertext with one changed bit", () => {
  const sealed = encrypt(Buffer.from("plain"), lock, randomBytes);
  for (let bit = 0; bit < sealed.length * 8; bit++) {
    const other = Buffer.from(sealed);
    other[bit >> 3] = (other[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    expect(() => decrypt(other, lock)).toThrow();
  }
  for (let length = 0; length < sealed.length; length++)
    expect(() => decrypt(sealed.subarray(0, length), lock)).toThrow();
});

it("rejects another context and another key", () => {
  const sealed = encrypt(Buffer.from("plain"), lock, randomBytes);
  expect(() => decrypt(sealed, { key, context: Buffer.from("places") })).toThrow();
  expect(() => decrypt(sealed, { key: new Uint8Array(32).fill(8), context })).toThrow();
});

it("never encrypts the same value to the same ciphertext", () => {
  const sealed = [1, 2].map(() => encrypt(Buffer.from("plain"), lock, randomBytes).toString("hex"));
  expect(new Set(sealed).size).toBe(2);
});
