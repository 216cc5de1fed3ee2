import { globSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { machineTraces } from "../src/machine-traces.ts";
import { repositoryRoot } from "../src/repository.ts";

const folders = ["packages", "examples", "bench", "docs", "scripts", ".ci", ".changeset"];
const skipped = /(^|\/)(node_modules|dist|coverage|\.next)(\/|$)/;
const textual = /(\.(ts|mts|js|mjs|json|md|yml|yaml|toml|txt|sql|sh|jsonl|npmrc)|\/run|LICENSE)$/;

function texts(): readonly string[] {
  const inside = folders.flatMap((folder) =>
    globSync(`${folder}/**/*`, { cwd: repositoryRoot, exclude: (path) => skipped.test(path) }),
  );
  const top = globSync(["*.*", "LICENSE", ".npmrc"], { cwd: repositoryRoot });
  return [...inside, ...top].filter((path) => textual.test(path));
}

describe("the repository speaks of itself alone", () => {
  it("names no folder of a machine and no registry host", () => {
    const paths = texts();
    expect(paths).toContain("package-lock.json");
    expect(paths).toContain("packages/core/src/index.ts");
    expect(
      paths.flatMap((path) =>
        machineTraces(path, readFileSync(`${repositoryRoot}/${path}`, "utf8")),
      ),
    ).toEqual([]);
  });

  it.each([
    ["home", "jane/tollgate"],
    ["Users", "jane/tollgate"],
    ["root", ".npmrc"],
    ["work", "main"],
  ])("would notice a path below /%s", (top, rest) => {
    expect(machineTraces("a.md", `see\n/${top}/${rest}`)).toEqual([
      `a.md:2 names /${top}/${rest.split("/")[0]}`,
    ]);
  });

  it("rejects a registry host, and allows addresses of the gateway", () => {
    const host = ["registry", "npmjs", "org"].join(".");
    expect(machineTraces("a.json", `"https://${host}/zod"`)).toHaveLength(1);
    expect(
      machineTraces("a.md", "http://127.0.0.1:8787/v1 and https://example.com/work/x"),
    ).toEqual([]);
  });
});
