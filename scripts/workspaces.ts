import { existsSync, readdirSync, readFileSync } from "node:fs";

/** The fields of a package.json that the scripts and the house rules read. */
export interface Manifest {
  readonly name: string;
  readonly private?: boolean;
  readonly type?: string;
  readonly license?: string;
  readonly description?: string;
  readonly homepage?: string;
  readonly bugs?: string;
  readonly repository?: { readonly type: string; readonly url: string; readonly directory: string };
  readonly keywords?: readonly string[];
  readonly engines?: Readonly<Record<string, string>>;
  readonly exports?: Readonly<Record<string, string | Readonly<Record<string, string>>>>;
  readonly files?: readonly string[];
  readonly bin?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>;
}

export interface Workspace {
  /** The folder, from the root of the repository: `packages/core`. */
  readonly directory: string;
  readonly manifest: Manifest;
}

/** Every workspace that the root package.json lists, sorted by folder. */
export function workspaces(root: string): readonly Workspace[] {
  const { workspaces: patterns } = JSON.parse(readFileSync(`${root}/package.json`, "utf8")) as {
    readonly workspaces: readonly string[];
  };
  return patterns
    .flatMap((pattern) =>
      pattern.endsWith("/*")
        ? readdirSync(`${root}/${pattern.slice(0, -2)}`).map(
            (name) => `${pattern.slice(0, -2)}/${name}`,
          )
        : [pattern],
    )
    .filter((directory) => existsSync(`${root}/${directory}/package.json`))
    .sort()
    .map((directory) => ({
      directory,
      manifest: JSON.parse(readFileSync(`${root}/${directory}/package.json`, "utf8")) as Manifest,
    }));
}

/** The workspaces that are published. */
export const publishedPackages = (root: string): readonly Workspace[] =>
  workspaces(root).filter(({ manifest }) => manifest.private !== true);

/** The entry points of a package: the source file of each `exports` entry that is code. */
export const entryPoints = ({ directory, manifest }: Workspace): readonly string[] =>
  Object.values(manifest.exports ?? {}).flatMap((entry) => {
    const source = typeof entry === "string" ? undefined : entry["tollgate-source"];
    return source === undefined ? [] : [`${directory}/${source.replace(/^\.\//, "")}`];
  });
