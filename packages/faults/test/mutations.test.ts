import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import {
  compareName,
  independent,
  mutantsOf,
  readAreas,
  switchName,
  withMutants,
  withoutPosition,
} from "../src/mutations/mutants.ts";

const packages = fileURLToPath(new URL("../..", import.meta.url));
const { areas, equivalent } = readAreas(readFileSync(`${packages}/faults/mutations.json`, "utf8"));
const list = Object.entries(areas);

const source = `
function fee(amounts, limit = 0) {
  if (!limit && amounts.length > 1) throw new Error("There is no limit.");
  let sum = 5n;
  for (const amount of amounts) sum += amount;
  return sum < limit ? "all" : [sum];
}`;

/** The function of the source with one active mutant, or with none. */
function withActive(
  active: number | null,
): (amounts: readonly bigint[], limit?: bigint) => unknown {
  const numbered = mutantsOf("fee.ts", source).map((mutant, number) => ({ ...mutant, number }));
  const compile = new Function(
    switchName,
    compareName,
    `${withMutants(source, numbered)}; return fee`,
  );
  return compile(
    (mutant: number) => mutant === active,
    (_: number, value: unknown) => value,
  );
}

it("a mutant is a small change of an operator, a condition, a value, a statement or a result", () => {
  const changes = mutantsOf("fee.ts", source).map(
    ({ kind, id }) => `${kind}: ${id.split(" ").slice(1).join(" ")}`,
  );
  expect(changes).toEqual([
    "early return:  → return",
    "number: 0 → 1",
    "condition: !limit && amounts.length > 1 → true",
    "condition: !limit && amounts.length > 1 → false",
    "logical operator: !limit && amounts.length > 1 → (!limit) || (amounts.length > 1)",
    "negation: !limit → limit",
    "comparison: amounts.length > 1 → (amounts.length) >= (1)",
    "number: 1 → 0",
    'statement: throw new Error("There is no limit."); → ',
    "number: 5n → 0n",
    "statement: sum += amount; → ",
    "arithmetic: sum += amount → sum -= (amount)",
    'result: sum < limit ? "all" : [sum] → undefined',
    "condition: sum < limit → true",
    "condition: sum < limit → false",
    "comparison: sum < limit → (sum) <= (limit)",
    'text: "all" → ""',
    "array: [sum] → []",
  ]);
});

it("each mutant changes what a file does only while it is active", () => {
  const calls: readonly (readonly [readonly bigint[], bigint?])[] = [
    [[1n, 2n]],
    [[1n, 2n], 100n],
    [[], 5n],
    [[2n]],
  ];
  const results = (active: number | null) =>
    calls.map((call) => {
      try {
        return withActive(active)(...call);
      } catch (error) {
        return error instanceof Error ? error.message : error;
      }
    });
  const asWritten = results(null);
  expect(asWritten).toEqual(["There is no limit.", "all", [5n], [7n]]);
  mutantsOf("fee.ts", source).forEach(({ id }, number) => {
    expect(results(number), id).not.toEqual(asWritten);
  });
});

it("an else keeps its if when a statement before it can be removed", () => {
  const branches = 'let said = ""; if (flag) said = "yes"; else said = "no"; return said';
  const numbered = mutantsOf("said.ts", `function f() { ${branches} }`).map((mutant, number) => ({
    ...mutant,
    number,
  }));
  const text = withMutants(`function f() { ${branches} }`, numbered);
  const say = new Function(switchName, compareName, "flag", `${text}; return f()`);
  const written = (_: number, value: unknown) => value;
  expect([true, false].map((flag) => say(() => false, written, flag))).toEqual(["yes", "no"]);
});

it("mutants that could hide each other are never active together", () => {
  const groups = independent(mutantsOf("fee.ts", source));
  expect(groups.map((group) => group.map(({ kind }) => kind))).toEqual([
    ["number", "early return"],
    ["condition", "number", "statement", "result"],
    ["condition", "arithmetic", "condition"],
    ["logical operator", "statement", "condition"],
    ["negation", "comparison", "comparison", "text", "array"],
    ["number"],
  ]);
});

it.each(list)("the patterns of the area %s find files", (_, patterns) => {
  for (const pattern of patterns)
    expect(globSync(pattern, { cwd: packages }), pattern).not.toEqual([]);
});

it.each(equivalent)("the equivalent mutant $mutant exists", ({ mutant }) => {
  const [file = ""] = mutant.split(" ");
  const ids = mutantsOf(file, readFileSync(`${packages}/${file}`, "utf8")).map(({ id }) => id);
  expect(ids.map(withoutPosition)).toContain(mutant);
});
