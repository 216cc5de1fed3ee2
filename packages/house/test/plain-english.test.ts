import { globSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { avoidedWording } from "../src/plain-english.ts";
import { everyFolder, repositoryRoot } from "../src/repository.ts";

const generated = /^docs\/reference\/api\//;
const installed = /(^|\/)(node_modules|\.next|dist)(\/|$)/;
const paths = globSync(
  [
    "*.md",
    "docs/**/*.md",
    "packages/*/README.md",
    "bench/README.md",
    "bench/measures/README.md",
    "examples/**/*.md",
  ],
  { cwd: repositoryRoot, exclude: (path) => installed.test(path) },
)
  .map((path) => path.replaceAll("\\", "/"))
  .filter((path) => !generated.test(path) && !installed.test(path))
  .sort();

const sourcesOf = (...patterns: readonly string[]): readonly string[] =>
  globSync(patterns, { cwd: repositoryRoot, exclude: (path) => installed.test(path) })
    .map((path) => path.replaceAll("\\", "/"))
    .filter((path) => !installed.test(path) && path !== ownTest);

/** Quotes the wordings to avoid. */
const ownTest = "packages/house/test/plain-english.test.ts";
const wordingsIn = (path: string): readonly string[] =>
  avoidedWording(path, readFileSync(`${repositoryRoot}/${path}`, "utf8")).map(
    (problem) => `${path}: ${problem}`,
  );

describe("comments, messages and test titles are in plain English", () => {
  it.each([...everyFolder(), "scripts", "bench"])("in %s", (folder) => {
    const found = sourcesOf(`${folder}/**/*.{ts,tsx,js,mjs}`);
    expect(found.length).toBeGreaterThan(0);
    expect(found.flatMap(wordingsIn)).toEqual([]);
  });

  it("at the top level", () => {
    expect(sourcesOf("*.ts").flatMap(wordingsIn)).toEqual([]);
  });
});

describe("the documentation is in plain English", () => {
  it.each(paths)("in %s", (path) => {
    expect(wordingsIn(path)).toEqual([]);
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
    "What a budget counts.",
    "The cap applies. What a model may write is capped.",
    "The value is not unknown.",
    "The answer is no error.",
    `The body is ${"not text and ".repeat(12)}not JSON.`,
  ])("rejects %s", (text) => {
    expect(avoidedWording("page.md", text)).toHaveLength(1);
  });

  it.each([
    "Understand a standalone app, besides others.",
    "What happens to a request, and what it costs",
    "`stands` and [a link](beside.md)",
    "```text\nanew\n```",
    "It waits so that nothing is lost. It stops so that you can go.",
    "## What it costs",
    "What does a call cost?",
    "Null if there is none. The key is no longer valid, and not until then.",
    `${"It is not text. ".repeat(12)}`,
    `The columns are ${"`name`, ".repeat(50)}and \`id\`.`,
    "Run it:\n\n    there is no hurry to run it anew",
  ])("allows %s", (text) => {
    expect(avoidedWording("page.md", text)).toEqual([]);
  });

  it("reads the comments and test titles of a test, but not its data", () => {
    const program = `
      /** Kept
       *  anew. */
      const url = "https://beside.test"; // whom it may concern
      const prompt = "What is the weather?";
      it("stands still today", () => {});
      it.each(["a"])("goes to \${it}, \${its} beside", () => {});
      it.each([["a unit and none that", 1]])("rejects %s", () => {});
      it("returns nothing if there is no Step", () => {});
      if (!store) throw new Error("there is no store");
    `;
    expect(avoidedWording("program.test.ts", program)).toHaveLength(7);
  });

  it("reads the comments and messages of a program, but not its short texts", () => {
    const program = `
      // It is
      // told.
      const stood = { anew: "beside" };
      throw new Error("There is no filter foo.");
      write(\`\${name} stands in \${place}\`);
      const problem = "this organization has a store, but there is no key";
      // Null if there is no key.
    `;
    expect(avoidedWording("program.ts", program)).toHaveLength(4);
  });
});
