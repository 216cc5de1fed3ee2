import { join, resolve } from "node:path";
import { publishedPackages, type Workspace } from "../workspaces.ts";
import { runNpm } from "./run-npm.ts";

/** A packed package. */
export interface Tarball extends Workspace {
  /** Absolute path of the .tgz file. */
  readonly path: string;
  readonly packedBytes: number;
  readonly unpackedBytes: number;
  /** Paths inside the package: `dist/index.js`. */
  readonly files: readonly string[];
}

/** The output of `npm pack --json` for a package. */
interface Packed {
  readonly name: string;
  readonly filename: string;
  readonly size: number;
  readonly unpackedSize: number;
  readonly files: readonly { readonly path: string }[];
}

/** Packs every published package of a built checkout into a folder. @throws Error if npm omits one. */
export function packPackages(root: string, folder: string): readonly Tarball[] {
  const packages = publishedPackages(root);
  const printed = runNpm(
    root,
    "pack",
    ...packages.map(({ directory }) => `./${directory}`),
    "--json",
    "--ignore-scripts",
    `--pack-destination=${folder}`,
  );
  const packed = JSON.parse(printed) as readonly Packed[];
  return packages.map((at) => {
    const found = packed.find(({ name }) => name === at.manifest.name);
    if (found === undefined) throw new Error(`npm packed no ${at.manifest.name}.`);
    const { filename, size, unpackedSize, files } = found;
    return {
      ...at,
      path: resolve(join(folder, filename)),
      packedBytes: size,
      unpackedBytes: unpackedSize,
      files: files.map(({ path }) => path),
    };
  });
}

/** A package and all packages of this checkout that it depends on. */
export function neededBy(name: string, packages: readonly Tarball[]): readonly Tarball[] {
  const needed = new Set<Tarball>();
  const add = (one: string): void => {
    const found = packages.find(({ manifest }) => manifest.name === one);
    if (found === undefined || needed.has(found)) return;
    needed.add(found);
    for (const dependency of Object.keys(found.manifest.dependencies ?? {})) add(dependency);
  };
  add(name);
  return [...needed];
}
