import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { describePolicy } from "./describe-policy.ts";

describePolicy({ describe, it });

describe("the same tests", () => {
  it("pass under node:test, in milliseconds each", { timeout: 30_000 }, () => {
    const words = ["--conditions=tollgate-source", "--test", "--test-reporter=tap"];
    const { NODE_TEST_CONTEXT: _, ...environment } = process.env;
    const report = execFileSync("node", [...words, "test/policy.node.ts"], {
      cwd: `${import.meta.dirname}/..`,
      encoding: "utf8",
      env: environment,
    });
    expect(report).toMatch(/^# tests 13$/m);
    expect(report).toMatch(/^# pass 13$/m);
    const cases = [...report.matchAll(/^ {6}duration_ms: (\S+)$/gm)].map(([, ms]) => Number(ms));
    expect(cases).toHaveLength(13);
    const median = cases.toSorted((one, other) => one - other)[6];
    console.log(`${median?.toFixed(1)} ms a case (median)`);
    expect(median).toBeLessThan(100);
  });
});
