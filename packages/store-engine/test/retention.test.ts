import { expect, it } from "vitest";
import { joinMessages } from "../src/retention.ts";

const joined = (...arrays: readonly string[]): string =>
  Buffer.from(joinMessages(arrays.map((array) => Buffer.from(array)))).toString();

it.each([
  [[], "[]"],
  [["[]", " [ \n] "], "[]"],
  [["[1]", "[]", "[2,3]"], "[1,2,3]"],
  [["[]", '["]"]', "[]", "[[1], 2]"], '["]",[1], 2]'],
  [["[{}]", '["\u0000\u{1f600}",1.0]\n'], '[{},"\u0000\u{1f600}",1.0]'],
])("joins the elements of %j unchanged", (arrays, expected) => {
  expect(joined(...arrays)).toBe(expected);
});

it.each(["", " ", "[", "]", "{}", '{"a":[1]}', "[1", "1]"])(
  "rejects %j, which is not an array",
  (text) => {
    expect(() => joined(text)).toThrow("must be a JSON array");
  },
);
