import { describe, expect, it } from "vitest";
import { entryPoints } from "../../../scripts/workspaces.ts";
import { functionLengths, mergeCandidates } from "../src/file-sizes.ts";
import { everyFolder, everyWorkspace, shippedSources, testSources } from "../src/repository.ts";
import { parseSource, type SourceFile } from "../src/source-file.ts";

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

/** The suites of the conformance package are lists of tests. */
const governed = everyFolder().filter((folder) => folder !== "packages/conformance");

describe("no function has more than 70 lines of its own, its SQL included", () => {
  it.each(governed)("in %s", (folder) => {
    const long = shippedSources(folder)
      .flatMap(functionLengths)
      .filter(({ ownLines }) => ownLines > 70);
    expect(long).toEqual([]);
  });

  it("counts callbacks, and no functions that are declared or members", () => {
    const text = `
      function outer() {
        list.map((one) => {
          return one;
        });
        function inner() {
          return 1;
        }
        return {
          member() {
            return inner();
          },
        };
      }
    `;
    const [outer] = functionLengths(parseSource("a.ts", text));
    expect(outer).toMatchObject({ name: "outer", lines: 13, ownLines: 13 - 3 - 3 });
  });
});

/** Short files with one importer that stay on their own, each with its reason. */
const separateFiles: Readonly<Record<string, string>> = {
  "packages/cli/src/require-node.ts": "checks the version of Node before anything else loads",
  "packages/house/src/repository.ts": "is shared by all tests of the house",
};

describe("a file under 60 lines moves into its only importer", () => {
  const sources = everyWorkspace().flatMap(({ directory }) => [
    ...shippedSources(directory),
    ...testSources(directory).filter(({ path }) => !/\.test(-d)?\.ts$/.test(path)),
  ]);
  const candidates = mergeCandidates(
    sources,
    new Set(everyWorkspace().flatMap(entryPoints)),
  ).filter((candidate) => /^(packages|bench)\/[^/]+\/src\//.test(candidate));
  const paths = candidates.map((candidate) => candidate.split(" ")[0] ?? "");

  it.each(everyFolder())("in %s", (folder) => {
    const found = candidates.filter(
      (candidate, index) =>
        candidate.startsWith(`${folder}/`) && !Object.hasOwn(separateFiles, paths[index] ?? ""),
    );
    expect(found).toEqual([]);
  });

  it("lists only exceptions that are needed", () => {
    expect(Object.keys(separateFiles).filter((path) => !paths.includes(path))).toEqual([]);
  });

  const importer = (text: string) => parseSource("packages/a/src/index.ts", text);
  const small = (text = "export const f = () => 1;") =>
    parseSource("packages/a/src/small.ts", text);
  const found = (files: readonly SourceFile[], ...entries: readonly string[]) =>
    mergeCandidates(files, new Set(entries));

  it("finds a short file with one importer, of values or types", () => {
    const expected = ["packages/a/src/small.ts → packages/a/src/index.ts"];
    expect(found([importer('import { f } from "./small.ts";'), small()])).toEqual(expected);
    expect(found([importer('import type { F } from "./small.ts";'), small()])).toEqual(expected);
    expect(found([importer('export { f } from "./small.ts";'), small()])).toEqual(expected);
  });

  it.each<[string, readonly SourceFile[], ...string[]]>([
    [
      "two importers",
      [
        importer('import { f } from "./small.ts";'),
        parseSource("packages/a/src/b.ts", 'import { f } from "./small.ts";'),
        small(),
      ],
    ],
    ["no importer", [importer(""), small()]],
    [
      "60 lines",
      [
        importer('import { f } from "./small.ts";'),
        small("export const f = () => 1;\n".repeat(60)),
      ],
    ],
    ["an entry point", [importer('import { f } from "./small.ts";'), small()], small().path],
    [
      "a re-export of an entry point",
      [importer('export * from "./small.ts";'), small()],
      importer("").path,
    ],
    ["a file loaded on demand", [importer('await import("./small.ts");'), small()]],
    [
      "a data table",
      [importer('import { f } from "./small.ts";'), small('export const f = ["a"];')],
    ],
  ])("allows %s", (_, files, ...entries) => {
    expect(found(files, ...entries)).toEqual([]);
  });
});
