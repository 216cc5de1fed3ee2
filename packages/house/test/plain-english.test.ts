import { globSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { avoidedWording } from "../src/plain-english.ts";
import { repositoryRoot } from "../src/repository.ts";

const generated = /^docs\/reference\/api\//;
const installed = /(^|\/)(node_modules|\.next|dist)(\/|$)/;
const paths = globSync(
  ["*.md", "docs/**/*.md", "packages/*/README.md", "bench/README.md", "examples/**/*.{md,ts,tsx}"],
  { cwd: repositoryRoot, exclude: (path) => installed.test(path) },
)
  .map((path) => path.replaceAll("\\", "/"))
  .filter((path) => !generated.test(path) && !installed.test(path))
  .sort();

describe("the documentation is in plain English", () => {
  it.each(paths)("in %s", (path) => {
    expect(avoidedWording(path, readFileSync(`${repositoryRoot}/${path}`, "utf8"))).toEqual([]);
  });

  it.each([
    "Compute the month anew.",
    "It is kept beside the record.",
    "One value stands for a history.",
    "The users whom your app knows",
    "Whoever settles first counts.",
    "The observers are\ntold.",
    "A reason and none that leaves",
    "It shows what was recorded.",
    "## What is on record",
    "- What the call costs is recorded.",
    "It waits so that it is whole, so that nothing is lost.",
    "There is no filter foo.",
    "```ts\n// It stands still.\n```",
  ])("which is not %s", (text) => {
    expect(avoidedWording("page.md", text)).toHaveLength(1);
  });

  it.each([
    "Understand a standalone app, besides others.",
    "What happens to a request, and what it costs",
    "`stands` and [a link](beside.md)",
    "```text\nanew\n```",
    "It waits so that nothing is lost. It stops so that you can go.",
  ])("which %s is", (text) => {
    expect(avoidedWording("page.md", text)).toEqual([]);
  });

  it("reads the comments and test titles of a program, and nothing else in it", () => {
    const program = `
      /** Kept
       *  anew. */
      const url = "https://beside.test"; // whom it may concern
      const prompt = "What is the weather?";
      it("stands still", () => {});
    `;
    expect(avoidedWording("program.ts", program)).toHaveLength(3);
  });
});
