import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { buildConfigurations } from "../../../scripts/references.ts";
import { entryPoints, type Manifest, type Workspace } from "../../../scripts/workspaces.ts";
import { exportNames } from "../src/exported-names.ts";
import { manifestProblems, undeclaredImports } from "../src/manifest-rules.ts";
import {
  everyPublishedPackage,
  everyWorkspace,
  repositoryRoot,
  shippedSources,
  testSources,
} from "../src/repository.ts";
import { callsImported, parseSource, readSource } from "../src/source-file.ts";

const published = everyPublishedPackage();

const exportsStore = (at: Workspace): boolean =>
  entryPoints(at)
    .flatMap((entryPoint) =>
      exportNames(readSource(repositoryRoot, entryPoint), (path) =>
        readSource(repositoryRoot, path),
      ),
    )
    .some((name) => /^[a-z]\w*Store$/.test(name));

const stores = published.filter(
  (at) => at.directory.startsWith("packages/store-") && exportsStore(at),
);
const bindings = everyWorkspace().filter(({ directory }) =>
  /^packages\/(node|express|fastify|next)$|\/hono-app$/.test(directory),
);
/** Not a provider: the connections and event streams of those over HTTP. */
const sharedByProviders = "packages/provider-http";
/** The suite tests an upstream. A provider without one, such as the built-in model, has its own tests. */
const providers = published.filter(
  ({ directory, manifest }) =>
    directory.startsWith("packages/provider-") &&
    directory !== sharedByProviders &&
    ["undici", "@tollgate/provider-http"].some((name) => name in (manifest.dependencies ?? {})),
);

const suites = [
  ["describeStoreContract", /^@tollgate\/conformance\/store-contract$/],
  ["describeProviderContract", /^@tollgate\/conformance\/provider-contract$/],
  ["describeBindingContract", /^@tollgate\/conformance\/binding-contract$/],
  // The examples that serve a gateway share this suite.
  ["describeServer", /\/describe-server\.ts$/],
] as const;

const runs = ({ directory }: Workspace, [suite, module]: (typeof suites)[number]): boolean =>
  testSources(directory).some((file) => callsImported(file, suite, module));

describe("every package", () => {
  it.each(everyWorkspace().map((at) => [at.directory, at] as const))("%s has tests", (_, at) => {
    const runners = testSources(at.directory).filter(
      (file) =>
        callsImported(file, "it", /^vitest$/) ||
        callsImported(file, "test", /^vitest$/) ||
        suites.some(([suite, module]) => callsImported(file, suite, module)),
    );
    expect(runners).not.toEqual([]);
  });

  it("declares its license, engines, exports and repository", () => {
    expect(published.flatMap(manifestProblems)).toEqual([]);
  });

  it("declares every import, and imports nothing internal to another package", () => {
    const problems = published.flatMap((at) =>
      shippedSources(at.directory).flatMap((file) => undeclaredImports(file, at)),
    );
    expect(problems).toEqual([]);
  });

  it("has a row in the README with its runtime dependencies", () => {
    const rows = readFileSync(`${repositoryRoot}/README.md`, "utf8").split("\n");
    for (const { manifest } of published) {
      const row = rows.find((line) => line.startsWith(`| \`${manifest.name}\` |`));
      const outside = Object.keys(manifest.dependencies ?? {}).filter(
        (name) => !name.startsWith("@tollgate/"),
      );
      expect(row, manifest.name).toBeDefined();
      for (const name of outside) expect(row).toContain(`\`${name}\``);
    }
  });

  it("is built after its dependencies", () => {
    for (const [path, expected] of buildConfigurations(repositoryRoot)) {
      const actual: unknown = JSON.parse(readFileSync(`${repositoryRoot}/${path}`, "utf8"));
      expect(actual, `${path}: run npm run sync:references`).toEqual(JSON.parse(expected));
    }
  });
});

describe("conformance suites", () => {
  it("are run by every store", () => {
    expect(stores.length).toBeGreaterThan(1);
    for (const at of stores) {
      expect(runs(at, suites[0]), at.directory).toBe(true);
    }
  });

  it("are run by every provider with an upstream", () => {
    expect(providers.length).toBeGreaterThan(1);
    for (const at of providers) {
      expect(runs(at, suites[1]), at.directory).toBe(true);
    }
  });

  it("are run by every binding", () => {
    expect(bindings).toHaveLength(5);
    for (const at of bindings) {
      expect(runs(at, suites[2]), at.directory).toBe(true);
    }
  });

  it("count as run only when imported from the suite and called", () => {
    const counts = (text: string) =>
      callsImported(parseSource("a.test.ts", text), "describeStoreContract", /store-contract$/);
    const suite = 'import { describeStoreContract } from "@tollgate/conformance/store-contract";';
    expect(counts(`${suite} describeStoreContract("memory", { open })`)).toBe(true);
    expect(counts(`${suite} // describeStoreContract("memory", { open })`)).toBe(false);
    expect(counts('describeStoreContract("memory", { open })')).toBe(false);
  });
});

describe("core", () => {
  it("depends on zod, and on nothing else (S41)", () => {
    const core = published.find(({ manifest }) => manifest.name === "@tollgate/core");
    expect(Object.keys(core?.manifest.dependencies ?? {}).sort()).toEqual(["zod"]);
    expect(core?.manifest.peerDependencies).toBeUndefined();
  });
});

describe("the rules on a package.json", () => {
  const repository = "git+https://github.com/tollgate-dev/tollgate.git";
  const good: Manifest = {
    name: "@tollgate/sample",
    type: "module",
    license: "MIT",
    description: "A sample",
    homepage: "https://github.com/tollgate-dev/tollgate/tree/main/packages/sample#readme",
    bugs: "https://github.com/tollgate-dev/tollgate/issues",
    repository: {
      type: "git",
      url: repository,
      directory: "packages/sample",
    },
    keywords: ["llm", "gateway", "tollgate"],
    engines: { node: "^22.22.3 || >=24.15" },
    files: ["dist", "src", "!src/**/*.test.ts"],
    exports: {
      ".": { "tollgate-source": "./src/a.ts", types: "./dist/a.d.ts", default: "./dist/a.js" },
    },
    dependencies: { zod: "^4.6.7" },
  };
  const at = (manifest: Manifest): Workspace => ({ directory: "packages/sample", manifest });

  it("accept a valid one", () => {
    expect(manifestProblems(at(good))).toEqual([]);
  });

  it.each<[string, Partial<Manifest>]>([
    ["another licence", { license: "ISC" }],
    ["another minimum version of Node", { engines: { node: ">=18" } }],
    ["CommonJS", { type: "commonjs" }],
    ["no description", { description: "" }],
    ["published tests", { files: ["src"] }],
    ["another homepage", { homepage: "https://example.com" }],
    ["no place to report a bug", { bugs: "" }],
    ["too few keywords", { keywords: ["llm"] }],
    ["a keyword twice", { keywords: ["llm", "gateway", "llm"] }],
    [
      "another package's folder",
      { repository: { type: "git", url: repository, directory: "packages/b" } },
    ],
    ["no entry point", { exports: {} }],
    [
      "an entry point without source",
      { exports: { ".": { types: "./dist/a.d.ts", default: "./dist/a.js" } } },
    ],
    ["an entry point that is a string", { exports: { ...good.exports, "./b": "./b.js" } }],
  ])("name %s", (_, change) => {
    expect(manifestProblems(at({ ...good, ...change }))).toHaveLength(1);
  });

  it.each(["undici", "@tollgate/core/store", "../../core/src/store.ts"])(
    "report an undeclared import of %s",
    (specifier) => {
      const file = parseSource("packages/sample/src/a.ts", `import type { A } from "${specifier}"`);
      expect(undeclaredImports(file, at(good))).toHaveLength(1);
    },
  );

  it("allow imports of declared packages, node and the package itself", () => {
    const text = 'import "zod"; import "node:fs"; import "./b.ts"; import "@tollgate/sample"';
    expect(undeclaredImports(parseSource("packages/sample/src/a.ts", text), at(good))).toEqual([]);
  });
});
