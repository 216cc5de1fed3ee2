import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { CommandError } from "./failure.ts";

const names = ["ts", "mts", "js", "mjs"].map((extension) => `tollgate.config.${extension}`);

/** The configuration file to use, or null where none is named and none is found. */
export function findConfiguration(directory: string, named: string | undefined): string | null {
  if (named === undefined)
    return names.map((name) => resolve(directory, name)).find((path) => existsSync(path)) ?? null;
  const path = resolve(directory, named);
  if (!existsSync(path)) throw new CommandError(`the configuration file ${path} does not exist`);
  return path;
}
