import { describe, expect, it } from "vitest";
import { functionLengths } from "../src/file-sizes.ts";
import { parseSource } from "../src/source-file.ts";

describe("the length of functions", () => {
  it("is counted in lines, by name", () => {
    const text = `
      function one() { return 1 }
      const two = () => {
        return 2;
      };
      const object = {
        async three(x: number) {
          return x;
        },
      };
    `;
    const lengths = functionLengths(parseSource("a.ts", text));
    expect(lengths.map(({ name, lines }) => [name, lines])).toEqual([
      ["one", 1],
      ["two", 3],
      ["three", 3],
    ]);
  });
});
