import { describe, expect, it } from "vitest";
import { entryPoints } from "../../../scripts/workspaces.ts";
import { exportNames, undocumented } from "../src/exported-names.ts";
import { everyPublishedPackage, repositoryRoot } from "../src/repository.ts";
import { parseSource, readSource } from "../src/source-file.ts";

const read = (path: string) => readSource(repositoryRoot, path);

const sample: Readonly<Record<string, string>> = {
  "src/entry.ts": `
    import { late } from "./late.ts";
    export { late };
    export { open as opened, type Shut } from "./inner.ts";
    export type * from "./nouns.ts";
    export { elsewhere } from "@tollgate/core";
    export const bare = 1;
    /** Too short. */
    export function terse() {}
    /** @internal */
    export interface Tagged {}
  `,
  "src/late.ts": "// A sentence, but no docstring.\nexport const late = 1;",
  "src/inner.ts": "/** Opens the file, once. */\nexport function open() {}\nexport type Shut = 1;",
  "src/nouns.ts":
    "/** A noun of the domain. */\nexport interface Noun {}\nexport interface Silent {}\nexport const value = 1;",
};

describe("the entry points", () => {
  it.each(everyPublishedPackage().map((at) => [at.directory, at] as const))(
    "of %s document every export",
    (_, at) => {
      const files = entryPoints(at).map(read);
      expect(files.length).toBeGreaterThan(0);
      expect(files.flatMap((file) => exportNames(file, read)).length).toBeGreaterThan(0);
      expect(files.flatMap((file) => undocumented(file, read))).toEqual([]);
    },
  );

  it("reports undocumented re-exports, renamed exports, types, and short or tagged comments", () => {
    const readSample = (path: string) => parseSource(path, sample[path] ?? "");
    const problems = undocumented(readSample("src/entry.ts"), readSample);
    const names = problems.map((problem) => /exports (\w+)/.exec(problem)?.[1]);
    expect(names).toEqual(["late", "Shut", "Silent", "bare", "terse", "Tagged"]);
  });
});
