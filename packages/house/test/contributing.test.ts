import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { markdownPage } from "../src/markdown.ts";
import { everyPublishedPackage, repositoryRoot } from "../src/repository.ts";

const read = (path: string) => readFileSync(`${repositoryRoot}/${path}`, "utf8");

/** The rows of the table of changes, each with the paths in its second and third cell. */
const changesIn = (page: string): readonly (readonly [string, readonly string[]])[] =>
  markdownPage(page)
    .section("Where a change goes")
    .split("\n")
    .flatMap((line) => {
      const [, change, folders = ""] = /^\| (an? .+?) \| (.+) \|$/.exec(line) ?? [];
      if (change === undefined) return [];
      return [[change, [...folders.matchAll(/`([\w-]+\/[^`]+)`/g)].map(([, path]) => path ?? "")]];
    });

describe("CONTRIBUTING.md", () => {
  const changes = changesIn(read("CONTRIBUTING.md"));

  it("lists each change once", () => {
    const ofRequests = [
      "field",
      "period",
      "obligation",
      "endpoint",
      "price dimension",
      "error code",
    ];
    const ofPackages = ["provider", "store", "binding", "command", "metric", "language"];
    for (const subject of [...ofRequests, ...ofPackages, "filter", "administrative method"])
      expect(
        changes.filter(([change]) => change.startsWith(`a ${subject}`) || change.includes(subject)),
        subject,
      ).toHaveLength(1);
  });

  it.each(changes)("leads to existing folders for %s", (_, paths) => {
    expect(paths).not.toEqual([]);
    expect(paths.filter((path) => !existsSync(`${repositoryRoot}/${path}`))).toEqual([]);
  });

  it("is read row by row", () => {
    const page =
      "## Where a change goes\n\n| to add | open | then |\n|---|---|---|\n| a nut | `a/b/` | see `c/d.md` |\n";
    expect(changesIn(page)).toEqual([["a nut", ["a/b/", "c/d.md"]]]);
  });

  it("names only scripts that exist", () => {
    const { scripts } = JSON.parse(read("package.json"));
    const named = ["README.md", "CONTRIBUTING.md", "bench/README.md", "packages/faults/README.md"]
      .flatMap((path) => [...read(path).matchAll(/\bnpm run (?:-s )?([\w:-]+)/g)])
      .map(([, name]) => name ?? "");
    expect(named.length).toBeGreaterThan(20);
    expect(named.filter((name) => !Object.hasOwn(scripts, name))).toEqual([]);
  });
});

describe("the changelogs", () => {
  const newest = (path: string) => /^## (\S+)$/m.exec(read(path))?.[1];

  it.each(everyPublishedPackage().map(({ directory }) => directory))(
    "begin with the version of %s",
    (directory) => {
      const { version } = JSON.parse(read(`${directory}/package.json`));
      expect(newest(`${directory}/CHANGELOG.md`)).toBe(version);
      expect(newest("CHANGELOG.md")).toBe(version);
    },
  );
});
