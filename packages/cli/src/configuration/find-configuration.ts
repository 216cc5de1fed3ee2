import { existsSync, readdirSync } from "node:fs";
import { extname, resolve } from "node:path";
import { CommandError } from "../failure.ts";

const endings = [".ts", ".mts", ".js", ".mjs", ".json", ".yaml", ".yml"];
const names = endings.map((ending) => `tollgate.config${ending}`);

/**
 * The configuration file to use, or null if none is named or found. Refuses a folder with two files of which one is JSON or
 * YAML, and a folder whose only file is misnamed: without that file, everything would be permitted.
 */
export function findConfiguration(directory: string, named: string | undefined): string | null {
  if (named !== undefined) {
    const path = resolve(directory, named);
    if (!existsSync(path)) throw new CommandError(`the configuration file ${path} does not exist`);
    return path;
  }
  const found = names.filter((name) => existsSync(resolve(directory, name)));
  const [first, second] = found;
  if (first === undefined) {
    refuseMisnamed(directory);
    return null;
  }
  const hasData = found.some((name) => !/^\.m?[tj]s$/.test(extname(name)));
  if (second !== undefined && hasData)
    throw new CommandError(`${directory} has ${found.join(" and ")}: choose one with --config`);
  return resolve(directory, first);
}

function refuseMisnamed(directory: string): void {
  const misnamed = readdirSync(directory).find((name) =>
    /^\.?tol{1,2}[-_]?gates?(?:[._-]?conf(?:ig(?:uration)?)?)?\.(?:[cm]?[jt]s|jsonc?|json5|ya?ml|toml|conf(?:ig)?)(?:\.txt)?$/i.test(
      name,
    ),
  );
  if (misnamed === undefined) return;
  throw new CommandError(
    `${directory} has ${misnamed}, which Tollgate doesn't read: rename it to tollgate.config.{ts,js,json,yaml}, or pass it with --config`,
  );
}
