import { describe, expect, it } from "vitest";
import { importCycles, layerProblems } from "../src/layers.ts";
import { everyPublishedPackage, shippedSources } from "../src/repository.ts";
import { parseSource } from "../src/source-file.ts";

const core = (path: string, text: string) => parseSource(`packages/core/src/${path}`, text);

describe("the layers of core", () => {
  it("hold for every file", () => {
    const files = shippedSources("packages/core");
    expect(files.length).toBeGreaterThan(30);
    expect(files.flatMap(layerProblems)).toEqual([]);
  });

  it("allow imports that go down or stay in the module", () => {
    const text = 'import { a } from "./b.ts"; import type { C } from "../domain/c.ts"';
    expect(layerProblems(core("policy/rule.ts", text))).toEqual([]);
  });

  it.each([
    [
      "an import that goes up",
      "domain/step.ts",
      'import { openStep } from "../contracts/store.ts"',
    ],
    [
      "a type import that goes up",
      "domain/step.ts",
      'import type { Store } from "../contracts/store.ts"',
    ],
    ["an import() type", "kernel/clock.ts", 'type Step = import("../domain/step.ts").Step'],
    ["a re-export that goes up", "domain/step.ts", 'export * from "../policy/rule.ts"'],
    ["a dynamic import", "wire/parse.ts", 'await import("../contracts/store.ts")'],
    [
      "an import between modules of one layer",
      "policy/rule.ts",
      'import { hold } from "../budgets/hold.ts"',
    ],
    ["errors importing kernel", "errors/codes.ts", 'import { digest } from "../kernel/digest.ts"'],
    ["wire importing contracts", "wire/parse.ts", 'import type { S } from "../contracts/store.ts"'],
    [
      "pipeline importing http",
      "pipeline/execute.ts",
      'import { toResponse } from "../http/to-response.ts"',
    ],
    ["a module without a layer", "utils/help.ts", ""],
    ["an import that leaves core", "policy.ts", 'import { x } from "../../node/src/index.ts"'],
  ])("reject %s", (_, path, text) => {
    expect(layerProblems(core(path, text))).toHaveLength(1);
  });
});

describe("import cycles", () => {
  it("do not exist in any package", () => {
    for (const { directory } of everyPublishedPackage()) {
      expect(importCycles(shippedSources(directory))).toEqual([]);
    }
  });

  it("are found through type imports", () => {
    const a = core("domain/a.ts", 'import type { B } from "./b.ts"');
    const b = core("domain/b.ts", 'export { c } from "./c.ts"');
    const c = core("domain/c.ts", 'type A = import("./a.ts").A');
    const cycle = ["a", "b", "c", "a"].map((name) => `packages/core/src/domain/${name}.ts`);
    expect(importCycles([a, b, c])).toEqual([cycle.join(" → ")]);
  });
});
