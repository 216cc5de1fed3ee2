import { pathToFileURL } from "node:url";
import { createGateway, type Gateway, type GatewayOptions } from "@tollgate/core";
import { CommandError, messageOf } from "./failure.ts";

/** The gateway that a configuration file default-exports, or the one its default-exported options make. */
export async function loadConfiguration(path: string): Promise<Gateway> {
  const exported = await defaultExport(path);
  if (isGateway(exported)) return exported;
  if (isOptions(exported)) return createGateway(exported);
  throw new CommandError(
    `${path} must default-export the options of createGateway, or what createGateway returned`,
  );
}

async function defaultExport(path: string): Promise<unknown> {
  try {
    const module: { readonly default?: unknown } = await import(pathToFileURL(path).href);
    return await module.default;
  } catch (thrown) {
    throw new CommandError(`${path} could not be loaded: ${messageOf(thrown)}`);
  }
}

function isGateway(value: unknown): value is Gateway {
  return (
    typeof value === "object" &&
    value !== null &&
    ["fetch", "ready", "close"].every((name) => typeof Reflect.get(value, name) === "function")
  );
}

function isOptions(value: unknown): value is GatewayOptions {
  return typeof value === "object" && value !== null && "store" in value && "providers" in value;
}
