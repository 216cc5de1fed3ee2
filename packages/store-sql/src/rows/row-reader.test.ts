import { expect, it } from "vitest";
import { readRow } from "./row-reader.ts";

it("reads each column as its type", () => {
  const read = readRow({
    text: "a",
    number: 7,
    wide: "8",
    bytes: Buffer.of(1),
    json: "[1]",
    none: null,
  });
  expect(read.text("text")).toBe("a");
  expect(read.oneOf("text", ["b", "a"])).toBe("a");
  expect(read.integer("number")).toBe(7);
  expect(read.integer("wide")).toBe(8);
  expect(read.bytes("bytes")).toEqual(Uint8Array.of(1));
  expect(read.json("json")).toEqual([1]);
  expect(read.textOrNull("none")).toBeNull();
  expect(read.jsonOrNull("none")).toBeNull();
  expect(read.oneOf("none", ["a", null])).toBeNull();
});

it.each([
  ["text", "a number", (row: ReturnType<typeof readRow>) => row.text("number")],
  ["a safe integer", "a text", (row: ReturnType<typeof readRow>) => row.integer("text")],
  ["a safe integer", "a fraction", (row: ReturnType<typeof readRow>) => row.integer("fraction")],
  ["bytes", "a text", (row: ReturnType<typeof readRow>) => row.bytes("text")],
  [
    "one of b, c",
    "another text",
    (row: ReturnType<typeof readRow>) => row.oneOf("text", ["b", "c"]),
  ],
  ["text", "nothing", (row: ReturnType<typeof readRow>) => row.text("absent")],
])("refuses to read %s where the row has %s", (expected, _found, read) => {
  const row = readRow({ text: "a", number: 7, fraction: 1.5 });
  expect(() => read(row)).toThrow(`does not hold ${expected}`);
});

it("rejects a value that is not a row", () => {
  expect(() => readRow(undefined).text("id")).toThrow("a row is not an object");
});
