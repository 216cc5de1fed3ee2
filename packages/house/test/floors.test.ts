import { describe, expect, it } from "vitest";
import { floorProblems } from "../src/floors.ts";
import { importCycles } from "../src/import-cycles.ts";
import { everyPublishedPackage, shippedSources } from "../src/repository.ts";
import { parseSource } from "../src/source-file.ts";

const core = (path: string, text: string) => parseSource(`packages/core/src/${path}`, text);

describe("the floors of core", () => {
  it("are kept by every file", () => {
    const files = shippedSources("packages/core");
    expect(files.length).toBeGreaterThan(30);
    expect(files.flatMap(floorProblems)).toEqual([]);
  });

  it("let imports go down and stay in the room", () => {
    const text = 'import { a } from "./b.ts"; import type { C } from "../domain/c.ts"';
    expect(floorProblems(core("policy/rule.ts", text))).toEqual([]);
  });

  it.each([
    ["a climb", "domain/step.ts", 'import { openStep } from "../contracts/store.ts"'],
    ["a type that climbs", "domain/step.ts", 'import type { Store } from "../contracts/store.ts"'],
    ["an import() type", "kernel/clock.ts", 'type Step = import("../domain/step.ts").Step'],
    ["a re-export that climbs", "domain/step.ts", 'export * from "../policy/rule.ts"'],
    ["a dynamic import", "wire/parse.ts", 'await import("../contracts/store.ts")'],
    ["neighbours", "policy/rule.ts", 'import { hold } from "../budgets/hold.ts"'],
    ["kernel and errors", "errors/codes.ts", 'import { digest } from "../kernel/digest.ts"'],
    ["wire reading contracts", "wire/parse.ts", 'import type { S } from "../contracts/store.ts"'],
    ["the line reading http", "pipeline/execute.ts", 'import { answer } from "../http/answer.ts"'],
    ["a room of no floor", "utils/help.ts", ""],
    ["leaving core", "policy.ts", 'import { x } from "../../node/src/index.ts"'],
  ])("refuse %s", (_, path, text) => {
    expect(floorProblems(core(path, text))).toHaveLength(1);
  });
});

describe("import cycles", () => {
  it("do not exist in any package", () => {
    for (const { directory } of everyPublishedPackage()) {
      expect(importCycles(shippedSources(directory))).toEqual([]);
    }
  });

  it("are found through types as well", () => {
    const a = core("domain/a.ts", 'import type { B } from "./b.ts"');
    const b = core("domain/b.ts", 'export { c } from "./c.ts"');
    const c = core("domain/c.ts", 'type A = import("./a.ts").A');
    const cycle = ["a", "b", "c", "a"].map((name) => `packages/core/src/domain/${name}.ts`);
    expect(importCycles([a, b, c])).toEqual([cycle.join(" → ")]);
  });
});
