import { describe, expect, it } from "vitest";
import { doors } from "../../../scripts/workspaces.ts";
import { doorNames, undocumented } from "../src/door-documentation.ts";
import { everyPublishedPackage, repositoryRoot } from "../src/repository.ts";
import { parseSource, readSource } from "../src/source-file.ts";

const read = (path: string) => readSource(repositoryRoot, path);

const sample: Readonly<Record<string, string>> = {
  "src/door.ts": `
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
  "src/inner.ts": "/** Opens the door, once. */\nexport function open() {}\nexport type Shut = 1;",
  "src/nouns.ts":
    "/** A noun of the domain. */\nexport interface Noun {}\nexport interface Silent {}",
};

describe("doors", () => {
  it.each(everyPublishedPackage().map((at) => [at.directory, at] as const))(
    "%s documents every symbol",
    (_, at) => {
      const files = doors(at).map(read);
      expect(files.length).toBeGreaterThan(0);
      expect(files.flatMap((file) => doorNames(file, read)).length).toBeGreaterThan(0);
      expect(files.flatMap((file) => undocumented(file, read))).toEqual([]);
    },
  );

  it("are found wanting through re-exports, renamings, types and short or tagged comments", () => {
    const readSample = (path: string) => parseSource(path, sample[path] ?? "");
    const problems = undocumented(readSample("src/door.ts"), readSample);
    const names = problems.map((problem) => /exports (\w+)/.exec(problem)?.[1]);
    expect(names).toEqual(["late", "Shut", "Silent", "bare", "terse", "Tagged"]);
  });
});
