import { describe, expect, it } from "vitest";
import {
  everyPublishedPackage,
  everyWorkspace,
  shippedSources,
  testSources,
} from "../src/repository.ts";
import { parseSource, type Rule } from "../src/source-file.ts";
import {
  ambientAccess,
  moduleState,
  skippedTests,
  slowExpressions,
  unsafeTypes,
} from "../src/style-rules.ts";

const shipped = everyPublishedPackage().flatMap(({ directory }) => shippedSources(directory));
const tests = everyWorkspace().flatMap(({ directory }) => testSources(directory));

const problemsOf = (rule: Rule, text: string, path = "packages/core/src/policy/rule.ts") =>
  rule(parseSource(path, text));

describe("time, randomness, environment and console come in from outside", () => {
  it("holds in every shipped file", () => {
    expect(shipped.flatMap(ambientAccess)).toEqual([]);
  });

  it.each([
    "const now = Date.now()",
    "const now = Date['now']()",
    "const { now } = { now: Date.now }",
    "const today = new Date()",
    "const dice = () => Math.random()",
    "const key = process.env.KEY",
    "const id = crypto.randomUUID()",
    'import { randomUUID } from "node:crypto"',
    "console.log(1)",
    "const log = console.error",
  ])("rejects %s", (text) => {
    expect(problemsOf(ambientAccess, text)).toHaveLength(1);
  });

  it("allows them in the kernel of core and in the command line, and dates of a given time everywhere", () => {
    expect(problemsOf(ambientAccess, "Date.now()", "packages/core/src/kernel/clock.ts")).toEqual(
      [],
    );
    expect(problemsOf(ambientAccess, "console.log(1)", "packages/cli/src/serve.ts")).toEqual([]);
    expect(problemsOf(ambientAccess, "new Date(5).toISOString()")).toEqual([]);
  });
});

describe("modules have no state", () => {
  it("holds in every shipped file", () => {
    expect(shipped.flatMap(moduleState)).toEqual([]);
  });

  it.each([
    "let count = 0",
    "export let count = 0",
    "var count = 0",
    "const cache = new Map<string, string>()",
    "export const seen = new WeakSet()",
  ])("rejects %s", (text) => {
    expect(problemsOf(moduleState, text)).toHaveLength(1);
  });

  it("allows constants and local variables", () => {
    const text = 'const names = new Set(["a"]); function f() { let n = 0; return n }';
    expect(problemsOf(moduleState, text)).toEqual([]);
  });
});

describe("types are not weakened", () => {
  it("holds in every shipped file", () => {
    expect(shipped.flatMap(unsafeTypes)).toEqual([]);
  });

  it.each([
    "let x: any",
    "const f = (x: Record<string, any>) => x",
    "const x = y as unknown as string",
    "const x = y!.z",
    "// @ts-expect-error\nconst x = 1",
  ])("rejects %s", (text) => {
    expect(problemsOf(unsafeTypes, text)).toHaveLength(1);
  });

  it("allows unknown, as const, and any in a string", () => {
    expect(problemsOf(unsafeTypes, 'const x: unknown = ["any"] as const')).toEqual([]);
  });
});

describe("no test is skipped", () => {
  it("holds in every package", () => {
    expect(tests.flatMap(skippedTests)).toEqual([]);
  });

  it.each(["it.skip('x', f)", "describe.only('x', f)", "test.todo('x')", "it.skipIf(a)('x', f)"])(
    "rejects %s",
    (text) => {
      expect(problemsOf(skippedTests, text)).toHaveLength(1);
    },
  );
});

describe("regular expressions take linear time (S35)", () => {
  it("holds in every shipped file", () => {
    expect(shipped.flatMap(slowExpressions)).toEqual([]);
  });

  it.each([
    "/0+$/",
    "/\\s+$/",
    "/(a+)+b/",
    "/^\\d+\\d+x/",
    "/a.*b/",
    'new RegExp(text, "u")',
    'RegExp("a")',
  ])("rejects %s", (text) => {
    expect(problemsOf(slowExpressions, `const found = ${text};`)).toHaveLength(1);
  });

  it.each(["/^0+/", "/^[a-z]{1,64}$/", "/[^/]$/", "/^(?:a|b)*$/", "/\\bx\\b/i"])(
    "allows %s",
    (text) => {
      expect(problemsOf(slowExpressions, `const found = ${text};`)).toEqual([]);
    },
  );
});
