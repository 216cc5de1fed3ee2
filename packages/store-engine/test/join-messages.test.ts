import { expect, it } from "vitest";
import { joinMessages } from "../src/join-messages.ts";

const joined = (...arrays: readonly string[]): string =>
  Buffer.from(joinMessages(arrays.map((array) => Buffer.from(array)))).toString();

it.each([
  [[], "[]"],
  [["[]", " [ \n] "], "[]"],
  [["[1]", "[]", "[2,3]"], "[1,2,3]"],
  [["[]", '["]"]', "[]", "[[1], 2]"], '["]",[1], 2]'],
  [["[{}]", '["\u0000\u{1f600}",1.0]\n'], '[{},"\u0000\u{1f600}",1.0]'],
])("joins %j to the elements of all, as they stand", (arrays, expected) => {
  expect(joined(...arrays)).toBe(expected);
});

it.each(["", " ", "[", "]", "{}", '{"a":[1]}', "[1", "1]"])("refuses %j: no array", (text) => {
  expect(() => joined(text)).toThrow("not a JSON array");
});
