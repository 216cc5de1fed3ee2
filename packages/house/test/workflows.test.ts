import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { everyPublishedPackage, repositoryRoot } from "../src/repository.ts";

const read = (path: string): string => readFileSync(join(repositoryRoot, path), "utf8");
const release = read(".github/workflows/release.yml");

describe("the workflows", () => {
  it.each(["ci", "release"])("%s runs every check that a change must pass", (name) => {
    expect(read(`.github/workflows/${name}.yml`)).toMatch(/^ +- run: \.ci\/run$/m);
  });

  it("publish with provenance, and attach the list of dependencies (S41, H17)", () => {
    expect(release).toMatch(/^ +id-token: write$/m);
    expect(release).toMatch(/^ +NPM_CONFIG_PROVENANCE: "true"$/m);
    expect(release).toMatch(/^ +- run: npm sbom .+ > sbom\.cdx\.json$/m);
    expect(release).toContain("gh release upload");
    // A failed check must stop the release.
    expect(release.indexOf(".ci/run")).toBeLessThan(release.indexOf("changeset publish"));
  });

  it("have only the permissions they name", () => {
    for (const name of ["ci", "release"])
      expect(read(`.github/workflows/${name}.yml`)).toMatch(/^permissions:\n {2}contents: read$/m);
  });
});

it("SECURITY.md says which version of the packages gets fixes (H17)", () => {
  for (const { directory } of everyPublishedPackage()) {
    const [major, minor] = String(JSON.parse(read(`${directory}/package.json`)).version).split(".");
    expect(read("SECURITY.md")).toContain(`newest minor (${major}.${minor})`);
  }
});
