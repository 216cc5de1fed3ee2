import { globSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { publishedPackages, workspaces } from "../../../scripts/workspaces.ts";
import { readSource, type SourceFile } from "./source-file.ts";

/** The root of this repository, without a trailing slash. */
export const repositoryRoot = fileURLToPath(new URL("../../..", import.meta.url)).replace(
  /\/$/,
  "",
);

const isTest = (path: string): boolean => /\.test(-d)?\.ts$/.test(path) || path.includes("/test/");

function sources(directory: string, wanted: (path: string) => boolean): readonly SourceFile[] {
  return globSync([`${directory}/src/**/*.ts`, `${directory}/test/**/*.ts`], {
    cwd: repositoryRoot,
    exclude: (path) => /(^|[\\/])(node_modules|\.next)$/.test(path),
  })
    .map((path) => path.replaceAll("\\", "/"))
    .filter(wanted)
    .sort()
    .map((path) => readSource(repositoryRoot, path));
}

/** The parsed source files that a package ships. */
export const shippedSources = (directory: string): readonly SourceFile[] =>
  sources(directory, (path) => !isTest(path));

/** The parsed tests of a package and their helpers. */
export const testSources = (directory: string): readonly SourceFile[] => sources(directory, isTest);

export const everyWorkspace = () => workspaces(repositoryRoot);
export const everyPublishedPackage = () => publishedPackages(repositoryRoot);

/** The folder of every workspace. */
export const everyFolder = (): readonly string[] =>
  everyWorkspace().map(({ directory }) => directory);
