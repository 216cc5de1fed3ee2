// Writes the configuration of the TypeScript build: packages/tsconfig.refs.json lists every published package, and each
// package's tsconfig.json refers to the packages it depends on.
import { writeFileSync } from "node:fs";
import { basename } from "node:path";
import { publishedPackages, type Workspace } from "./workspaces.ts";

const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;

function packageConfiguration(at: Workspace, all: readonly Workspace[]): string {
  const { dependencies, peerDependencies = {}, peerDependenciesMeta = {} } = at.manifest;
  // An optional peer is only forwarded, by an entry point that is not compiled.
  const peers = Object.keys(peerDependencies).filter(
    (name) => !peerDependenciesMeta[name]?.optional,
  );
  const needed = new Set([...Object.keys(dependencies ?? {}), ...peers]);
  return json({
    extends: "../tsconfig.lib.json",
    compilerOptions: { rootDir: "src", outDir: "dist", tsBuildInfoFile: "dist/.tsbuildinfo" },
    include: ["src"],
    exclude: ["src/**/*.test.ts", "src/**/*.test-d.ts"],
    references: all
      .filter(({ manifest }) => needed.has(manifest.name))
      .map(({ directory }) => ({ path: `../${basename(directory)}` })),
  });
}

/** The text of each configuration file of the build, by its path from the root. */
export function buildConfigurations(root: string): ReadonlyMap<string, string> {
  const all = publishedPackages(root);
  const files = new Map(
    all.map((at) => [`${at.directory}/tsconfig.json`, packageConfiguration(at, all)]),
  );
  const references = all.map(({ directory }) => ({ path: basename(directory) }));
  return files.set("packages/tsconfig.refs.json", json({ files: [], references }));
}

if (import.meta.main) {
  for (const [path, text] of buildConfigurations(".")) writeFileSync(path, text);
}
