import { existsSync, lstatSync, readdirSync } from "node:fs";
import { extname, resolve } from "node:path";
import type { LoadedConfiguration } from "./configuration/load-configuration.ts";
import { CommandError } from "./failure.ts";

/** A gateway and the source of its configuration. */
export interface OpenedGateway extends LoadedConfiguration {
  /** The configuration file; null without one, for the defaults. */
  readonly configuration: string | null;
}

/** Creates the gateway of a command: from `--config`, from the file in the current folder, or with the defaults. */
export async function openGateway(file: string | undefined): Promise<OpenedGateway> {
  const configuration = findConfiguration(process.cwd(), file);
  if (configuration !== null) {
    const { loadConfiguration } = await import("./configuration/load-configuration.ts");
    return { ...(await loadConfiguration(configuration, process.env)), configuration };
  }
  const [{ createGateway }, { defaultOptions }] = await Promise.all([
    import("@tollgate/core"),
    import("./configuration/default-gateway.ts"),
  ]);
  const options = await defaultOptions(process.env);
  return { gateway: createGateway(options), options, serve: {}, configuration };
}

const endings = [".ts", ".mts", ".js", ".mjs", ".json", ".yaml", ".yml"];
const names = endings.map((ending) => `tollgate.config${ending}`);

/**
 * Returns the configuration file to use, or null without one. Rejects a folder with several files if one is JSON or YAML,
 * and a folder with only a misnamed file: without that file, everything would be permitted.
 */
export function findConfiguration(directory: string, named: string | undefined): string | null {
  if (named !== undefined) return requireFile(resolve(directory, named));
  const found = names.filter((name) => isEntry(resolve(directory, name)));
  const [first, second] = found;
  if (first === undefined) {
    refuseMisnamed(directory);
    return null;
  }
  const hasData = found.some((name) => !/^\.m?[tj]s$/.test(extname(name)));
  if (second !== undefined && hasData)
    throw new CommandError(`${directory} has ${found.join(" and ")}: choose one with --config`);
  return requireFile(resolve(directory, first));
}

/** Whether a folder has an entry of this name, even if it is a broken link. */
function isEntry(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

function requireFile(path: string): string {
  if (existsSync(path)) return path;
  const why = isEntry(path) ? " is a broken link" : "";
  throw new CommandError(`configuration file not found: ${path}${why}`);
}

function refuseMisnamed(directory: string): void {
  const misnamed = readdirSync(directory).find((name) =>
    /^\.?tol{1,2}[-_]?gates?(?:[._-]?conf(?:ig(?:uration)?)?)?\.(?:[cm]?[jt]s|jsonc?|json5|ya?ml|toml|conf(?:ig)?)(?:\.txt)?$/i.test(
      name,
    ),
  );
  if (misnamed === undefined) return;
  throw new CommandError(
    `${directory} has ${misnamed}, which Tollgate doesn't read: rename it to tollgate.config.{ts,js,json,yaml} or pass it with --config`,
  );
}
