import { existsSync, globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import {
  needsTest,
  rows,
  rowsOf,
  type TestFile,
  tableOfRows,
  titlesIn,
} from "../src/fault-rows.ts";
import { readGuards } from "../src/guard-removal.ts";

const repository = fileURLToPath(new URL("../../..", import.meta.url));
const read = (path: string): string => readFileSync(`${repository}/${path}`, "utf8");
const guards = readGuards(read("packages/faults/guards.json"));
const files: readonly TestFile[] = globSync("packages/faults/test/*.test.ts", { cwd: repository })
  .sort()
  .map((path) => ({ path: path.replace("packages/faults/", ""), source: read(path) }));
const tested = rows.filter(needsTest);

it("gives each row of the fault matrix a test that names it", () => {
  const named = files.flatMap(titlesIn).flatMap(rowsOf);
  expect(tested.filter((row) => !named.includes(row))).toEqual([]);
});

it("gives each row a guard whose removal fails its tests", () => {
  const guarded = new Set(guards.map(({ row }) => row));
  expect(rows.filter((row) => !guarded.has(row))).toEqual([]);
  for (const { row, test, tests, command } of guards) {
    expect(test.match(/[A-Z]\d+/g), row).toContain(row);
    const file = command === undefined ? tests : `packages/faults/src/${command}.ts`;
    if (file !== undefined) expect(existsSync(`${repository}/${file}`), file).toBe(true);
  }
});

it("lists every row with its test or command and its guards in README.md", () => {
  expect(read("packages/faults/README.md")).toContain(tableOfRows(files, guards));
});

it.each(guards.map(({ row, ...guard }) => [row, guard] as const))(
  "finds the guard of %s where the list says it is",
  (_, { file, find, replace }) => {
    expect(read(file).split(find)).toHaveLength(2);
    expect(replace).not.toBe(find);
  },
);

it("rejects an invalid list", () => {
  expect(() => readGuards("{}")).toThrow("must be an array");
  expect(() => readGuards('[{"row":"F1"}]')).toThrow('Invalid guard: {"row":"F1"}');
});
