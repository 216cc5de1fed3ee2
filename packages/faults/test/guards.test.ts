import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { readGuards } from "../src/guard-removal.ts";

const repository = fileURLToPath(new URL("../../..", import.meta.url));
const read = (path: string): string => readFileSync(`${repository}/${path}`, "utf8");
const guards = readGuards(read("packages/faults/guards.json"));
const names = globSync("packages/faults/test/*.test.ts", { cwd: repository })
  .map(read)
  .flatMap((source) => [...source.matchAll(/^(?:it|\]\)| {2}).*?"((?:F\d+ )+[^"]+)"/gm)])
  .map(([, name = ""]) => name);
/** The rows of the fault matrix whose behaviour exists today; the others belong to features that are not built yet. */
const rows = [...numbers(1, 37), ...numbers(39, 45), 48, 49, 55].map((row) => `F${row}`);

it("gives each row of the fault matrix a test that names it", () => {
  expect(rows.filter((row) => !names.some((name) => rowsOf(name).includes(row)))).toEqual([]);
});

it("gives each row a guard whose removal fails its tests", () => {
  expect(rows.filter((row) => !guards.some((guard) => guard.row === row))).toEqual([]);
  for (const { row, test } of guards) expect(test.startsWith(`${row} `), row).toBe(true);
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

/** A title starts with its rows. */
function rowsOf(title: string): readonly string[] {
  return /^(?:F\d+ )*/.exec(title)?.[0].trim().split(" ") ?? [];
}

function numbers(first: number, last: number): readonly number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}
