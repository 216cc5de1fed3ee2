import fc from "fast-check";
import { expect, it } from "vitest";
import { columnTypes, toParameter } from "./values.ts";

const text = 25;
const bytea = 17;

it("keeps every text, including U+0000, which the server rejects (S21)", () => {
  const characters = fc.string({
    unit: fc.constantFrom("\u0000", "\u001a", "0", "1", "a", "\u{1f600}"),
  });
  fc.assert(
    fc.property(characters, (value) => {
      const sent = String(toParameter(value));
      expect(sent).not.toContain("\u0000");
      expect(columnTypes.getTypeParser(text)(sent)).toBe(value);
    }),
  );
});

it("encodes different texts differently", () => {
  const characters = fc.string({ unit: fc.constantFrom("\u0000", "\u001a", "0", "1") });
  fc.assert(
    fc.property(characters, characters, (one, other) => {
      expect(toParameter(one) === toParameter(other)).toBe(one === other);
    }),
  );
});

it("sends only the bytes of a view, not its whole buffer", () => {
  const view = new Uint8Array([1, 2, 3, 4]).subarray(1, 3);
  expect(toParameter(view)).toEqual(Buffer.from([2, 3]));
});

it("reads bytes in hex and rejects other forms", () => {
  expect(columnTypes.getTypeParser(bytea)("\\x00ff")).toEqual(Buffer.from([0, 255]));
  expect(() => columnTypes.getTypeParser(bytea)("\\000")).toThrow("bytea_output");
});
