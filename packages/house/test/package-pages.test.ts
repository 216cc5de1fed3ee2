import { existsSync, globSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { packagePages } from "../../../scripts/package-pages.ts";
import { apiPage } from "../src/api-page.ts";
import { repositoryRoot } from "../src/repository.ts";
import { parseSource } from "../src/source-file.ts";

const pages = packagePages(repositoryRoot);
const current = (path: string): string | null =>
  existsSync(`${repositoryRoot}/${path}`)
    ? readFileSync(`${repositoryRoot}/${path}`, "utf8")
    : null;

const sample: Readonly<Record<string, string>> = {
  "p/src/index.ts": `
    export type { Noun } from "./noun.ts";
    export { open, twice } from "./open.ts";
    /** How long it waits, in milliseconds. */
    export const patience: number = 60 * 1_000;
    /** A failure that has a code. */
    export class Failure extends Error {
      readonly code = 7;
      /** Says it again. */
      repeat(): string { return "secret of the body"; }
    }
  `,
  "p/src/noun.ts": `/** A noun of the domain. */
    export interface Noun {
      /** In nanodollars. */
      readonly cost: number;
    }`,
  "p/src/open.ts": `/**
     * Opens the file, once.
     * @throws Error when it is locked
     */
    export async function open(key: string): Promise<void> { throw new Error("secret of the body"); }
    /** Doubles what it gets. */
    export function twice(value: string): string;
    export function twice(value: number): number;
    export function twice(value: unknown): unknown { return value; }`,
};

describe("the pages of the packages", () => {
  it.each([...pages])("%s matches the output of npm run docs:api", (path, text) => {
    expect(current(path), "run npm run docs:api").toBe(text);
  });

  it("include no page of a removed package", () => {
    const written = globSync("docs/reference/api/*.md", { cwd: repositoryRoot });
    expect(written.filter((path) => !pages.has(path.replaceAll("\\", "/")))).toEqual([]);
  });
});

describe("an API page", () => {
  const exports = {
    ".": { "tollgate-source": "./src/index.ts" },
    "./package.json": "./package.json",
  };
  const manifest = { name: "@tollgate/p", description: "A package", exports };
  const page = apiPage({ directory: "p", manifest }, (path) =>
    parseSource(path, sample[path] ?? ""),
  );

  it("lists every export, functions before types", () => {
    const headings = [...page.matchAll(/^##+ (.+)$/gm)].map(([, heading]) => heading);
    expect(headings).toEqual([
      "From `@tollgate/p`",
      "Failure",
      "open",
      "patience",
      "twice",
      "Noun",
    ]);
  });

  it("shows signatures without bodies", () => {
    expect(page).toContain("async function open(key: string): Promise<void>;");
    expect(page).toContain(
      "function twice(value: string): string;\nfunction twice(value: number): number;\n```",
    );
    expect(page).toContain("const patience: number;");
    expect(page).toContain("/** Says it again. */");
    expect(page).toContain("/** In nanodollars. */");
    expect(page).not.toContain("secret of the body");
  });

  it("shows the docstring, with thrown errors in a separate paragraph", () => {
    expect(page).toContain("Opens the file, once.\n\nThrows `Error`: when it is locked\n");
  });
});
