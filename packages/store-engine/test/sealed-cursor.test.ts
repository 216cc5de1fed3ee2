import { randomBytes } from "node:crypto";
import { encodeCursor } from "@tollgate/core/store";
import { expect, it } from "vitest";
import { openCursor, sealCursor } from "../src/index.ts";

const seal = { secret: "secret", organizationId: "acme" };
const places = [
  { order: 1_767_614_407_000, tie: "6" },
  { order: 9, tie: "" },
  { order: -5, tie: "0" },
  { order: Number.MAX_SAFE_INTEGER, tie: String(Number.MAX_SAFE_INTEGER) },
];

it.each(places)("gives back the place $order $tie, and hides it", (place) => {
  const plain = encodeCursor("steps", place);
  const sealed = sealCursor("steps", plain, seal);
  expect(openCursor("steps", sealed, seal)).toBe(plain);
  const [, order, text] = JSON.parse(Buffer.from(sealed, "base64url").toString());
  expect(order).toBe(0);
  // One place more changes the whole text.
  const next = sealCursor("steps", encodeCursor("steps", { ...place, order: 8 }), seal);
  expect(Buffer.from(next, "base64url").toString()).not.toContain(text.slice(0, 8));
});

it("opens nothing that another organization or list sealed, and nothing forged", () => {
  const plain = encodeCursor("steps", { order: 1, tie: "2" });
  const sealed = sealCursor("steps", plain, seal);
  const refused = { code: "invalid_argument" };
  const open = (cursor: string, of = seal, list = "steps") =>
    expect(() => openCursor(list, cursor, of)).toThrow(expect.objectContaining(refused));
  open(sealed, { ...seal, secret: "another" });
  open(sealed, { ...seal, organizationId: "globex" });
  open(sealed, seal, "keys");
  open(plain);
  open("");
  for (let round = 0; round < 200; round++)
    for (const length of [15, 16, 17])
      open(encodeCursor("steps", { order: 0, tie: randomBytes(length).toString("base64url") }));
  const [, , text] = JSON.parse(Buffer.from(sealed, "base64url").toString());
  open(encodeCursor("steps", { order: 1, tie: text }));
  open(encodeCursor("steps", { order: 0, tie: `${text}=` }));
});
