import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { describePolicy } from "./describe-policy.ts";

describePolicy({ describe, it });

describe("the same tests", () => {
  it("pass under node:test", { timeout: 30_000 }, () => {
    const words = ["--conditions=tollgate-source", "--test", "--test-reporter=tap"];
    const { NODE_TEST_CONTEXT: _, ...environment } = process.env;
    const report = execFileSync("node", [...words, "test/policy.node.ts"], {
      cwd: `${import.meta.dirname}/..`,
      encoding: "utf8",
      env: environment,
    });
    expect(report).toMatch(/^# tests 13$/m);
    expect(report).toMatch(/^# pass 13$/m);
  });
});
