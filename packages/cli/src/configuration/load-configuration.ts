import { extname } from "node:path";
import { createGateway, type Gateway, GatewayError, type GatewayOptions } from "@tollgate/core";
import type { Problem } from "@tollgate/core/schemas";
import { CommandError } from "../failure.ts";
import { ConfigurationError, fileProblem } from "./configuration-error.ts";
import type { ServeSettings } from "./data-schema.ts";
import type { Environment } from "./fill-in.ts";
import type { Hidden } from "./hide-credentials.ts";

/** A configuration file, loaded. Nothing is opened yet. */
export interface LoadedConfiguration {
  readonly gateway: Gateway;
  /** Null if the file exports a gateway instead of options. */
  readonly options: GatewayOptions | null;
  /** The server settings of a JSON or YAML file. */
  readonly serve: ServeSettings;
}

const moduleEndings = new Set([".ts", ".mts", ".cts", ".js", ".mjs", ".cjs"]);
const dataEndings = new Set([".json", ".yaml", ".yml"]);

/**
 * Loads a configuration file: a module that default-exports the options of `createGateway`, or a gateway, or JSON or YAML.
 * @throws ConfigurationError with every problem, but no credential and no variable's value
 */
export async function loadConfiguration(
  file: string,
  environment: Environment,
): Promise<LoadedConfiguration> {
  const ending = extname(file).toLowerCase();
  if (dataEndings.has(ending)) return loadData(file, environment);
  if (moduleEndings.has(ending)) return loadModule(file);
  throw fileProblem(
    file,
    "The name of a configuration file must end in .ts, .mts, .js, .mjs, .json, .yaml or .yml.",
  );
}

async function loadModule(file: string): Promise<LoadedConfiguration> {
  const { importDefault } = await import("./import-default.ts");
  const exported = await importDefault(file);
  if (isGateway(exported)) return { gateway: exported, options: null, serve: {} };
  if (isOptions(exported)) return { gateway: create(file, exported), options: exported, serve: {} };
  throw new CommandError(`${file} must default-export the options of createGateway, or a gateway`);
}

async function loadData(file: string, environment: Environment): Promise<LoadedConfiguration> {
  const [{ readDataFile }, { fillIn }, { hideCredentials, shownCredentials }] = await Promise.all([
    import("./read-file.ts"),
    import("./fill-in.ts"),
    import("./hide-credentials.ts"),
  ]);
  const { value, problems: unfilled, used } = fillIn(await readDataFile(file), environment);
  const hidden = hideCredentials(value, used);
  if (value === null && unfilled.length > 0) throw refused(file, unfilled, hidden);
  const [{ readConfiguration }, { optionsOf }] = await Promise.all([
    import("./data-schema.ts"),
    import("./gateway-of-data.ts"),
  ]);
  const read = await readConfiguration(value);
  const missing = new Set(unfilled.map(({ path }) => path));
  const problems = [
    ...unfilled,
    ...shownCredentials(value),
    // Reports a missing variable once, not as a wrong value too.
    ...read.problems.filter(({ path }) => !missing.has(path)),
  ];
  if (problems.length > 0 || read.value === null) throw refused(file, problems, hidden);
  try {
    const options = await optionsOf(read.value);
    return { gateway: create(file, options), options, serve: read.value.serve ?? {} };
  } catch (thrown) {
    throw thrown instanceof GatewayError || thrown instanceof ConfigurationError
      ? refused(file, thrown.problems, hidden)
      : thrown;
  }
}

function create(file: string, options: GatewayOptions): Gateway {
  try {
    return createGateway(options);
  } catch (thrown) {
    if (!(thrown instanceof GatewayError)) throw thrown;
    throw new ConfigurationError(file, thrown.problems);
  }
}

function refused(file: string, problems: readonly Problem[], hidden: Hidden): ConfigurationError {
  return new ConfigurationError(
    file,
    problems.map(({ path, message }) => ({ path: hidden.in(path), message: hidden.in(message) })),
  );
}

function isGateway(value: unknown): value is Gateway {
  return (
    typeof value === "object" &&
    value !== null &&
    ["fetch", "ready", "close"].every((name) => typeof Reflect.get(value, name) === "function")
  );
}

/** `createGateway` reports a missing store or missing providers, together with other problems. */
function isOptions(value: unknown): value is GatewayOptions {
  return typeof value === "object" && value !== null && ("store" in value || "providers" in value);
}
