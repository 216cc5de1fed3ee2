import { describe, expect, it } from "vitest";
import { ambiguousNames, replacedName } from "../src/names.ts";
import {
  everyFolder,
  everyPublishedPackage,
  shippedSources,
  testSources,
} from "../src/repository.ts";
import { parseSource } from "../src/source-file.ts";

const parse = (text: string) => parseSource("packages/core/src/a.ts", text);

describe("names are the standard terms of the field", () => {
  it.each(everyFolder())("in %s", (folder) => {
    const files = [...shippedSources(folder), ...testSources(folder)];
    expect(files.flatMap(replacedName)).toEqual([]);
  });

  it.each([
    "const mostBytes = 1",
    "const options = { longestWait: 1 }",
    "type Shortest = { readonly leastBytes: number }",
    "function shortestFirst() {}",
    "const run = (context: Line) => context",
    "await durable(store.openStep(intent))",
    "function durable() {}",
    "await surely(change)",
    "pool.giveBack(connection)",
  ])("rejects %s", (text) => {
    expect(replacedName(parse(text))).not.toEqual([]);
  });

  it("allows maxBytes, the longest prefix, and a replaced name in a text", () => {
    const text =
      'const maxBytes = 1; const longest = prefix; const title = "Line"; open({ durable: true })';
    expect(replacedName(parse(text))).toEqual([]);
  });
});

describe("a name has one meaning", () => {
  it("in all published packages together", () => {
    const files = everyPublishedPackage().flatMap(({ directory }) => shippedSources(directory));
    expect(ambiguousNames(files)).toEqual([]);
  });

  it("is checked for types and functions", () => {
    const other = parseSource(
      "packages/node/src/b.ts",
      "const routeOf = () => null; interface Answer {}",
    );
    const file = parse("function routeOf() {} type Answer = 1; interface Route {}");
    expect(ambiguousNames([file, other])).toEqual([
      "routeOf has several meanings: packages/core/src/a.ts:1, packages/node/src/b.ts:1",
      "Answer has several meanings: packages/core/src/a.ts:1, packages/node/src/b.ts:1",
    ]);
  });
});
