import type { GatewayOptions } from "@tollgate/core";
import type { Provider } from "@tollgate/core/provider";
import type { Store } from "@tollgate/core/store";
import { catalogPrices } from "@tollgate/prices";
import type { OpenaiCompatibleOptions } from "@tollgate/provider-openai";
import { simProvider } from "@tollgate/provider-sim";
import { sqliteStore } from "@tollgate/store-sqlite";
import { anthropicOptions, environmentGateways } from "./environment-gateways.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Returns the options of the gateway without a configuration file: `DATABASE_URL` or `./tollgate.db`, the built-in model,
 * and a gateway for each key in the environment.
 */
export async function defaultOptions(environment: Environment): Promise<GatewayOptions> {
  return {
    store: await storeOf(environment),
    providers: { sim: simProvider(), ...(await accounts(environment)) },
    prices: catalogPrices(),
  };
}

/** Ignores a `DATABASE_URL` of another database, which is probably for another program. */
async function storeOf({ DATABASE_URL: url }: Environment): Promise<Store> {
  if (url === undefined || !/^postgres(?:ql)?:/.test(url))
    return sqliteStore({ filename: "tollgate.db" });
  const { postgresStore } = await import("@tollgate/store-postgres");
  return postgresStore({ url });
}

async function accounts(environment: Environment): Promise<Readonly<Record<string, Provider>>> {
  const options = Object.entries(environmentGateways(environment));
  return { ...(await overChatCompletions(options)), ...(await overMessages(environment)) };
}

async function overChatCompletions(
  options: readonly (readonly [string, OpenaiCompatibleOptions])[],
): Promise<Readonly<Record<string, Provider>>> {
  if (options.length === 0) return {};
  const { openaiCompatible } = await import("@tollgate/provider-openai");
  return Object.fromEntries(options.map(([gateway, one]) => [gateway, openaiCompatible(one)]));
}

async function overMessages(environment: Environment): Promise<Readonly<Record<string, Provider>>> {
  const options = anthropicOptions(environment);
  if (options === null) return {};
  const { anthropic } = await import("@tollgate/provider-anthropic");
  return { anthropic: anthropic(options) };
}
