import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { everyPublishedPackage, repositoryRoot } from "../src/repository.ts";

interface Needs {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

const folder = "examples/next-app";
const { packages } = JSON.parse(
  readFileSync(`${repositoryRoot}/${folder}/package-lock.json`, "utf8"),
) as { readonly packages: Readonly<Record<string, Needs>> };

const locked = everyPublishedPackage().flatMap(({ manifest }) => {
  const entry = packages[`node_modules/${manifest.name}`];
  return entry === undefined ? [] : [{ name: manifest.name, manifest, entry }];
});

describe("the lock file of the Next app, which is not a workspace", () => {
  it.each(locked)("has the dependencies of $name", ({ manifest, entry }) => {
    const needs = ({ dependencies = {}, peerDependencies = {} }: Needs) => ({
      dependencies,
      peerDependencies,
    });
    expect(needs(entry), "run npm run lock:next-app").toEqual(needs(manifest));
  });

  it("contains every workspace package that they depend on", () => {
    const names = locked.map(({ name }) => name);
    expect(names).toContain("@tollgate/next");
    const needed = locked.flatMap(({ manifest }) => Object.keys(manifest.dependencies ?? {}));
    expect(needed.filter((name) => name.startsWith("@tollgate/") && !names.includes(name))).toEqual(
      [],
    );
  });
});
