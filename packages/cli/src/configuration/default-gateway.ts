import type { GatewayOptions } from "@tollgate/core";
import type { Provider } from "@tollgate/core/provider";
import type { Store } from "@tollgate/core/store";
import { catalogPrices } from "@tollgate/prices";
import { simProvider } from "@tollgate/provider-sim";
import { sqliteStore } from "@tollgate/store-sqlite";
import { environmentGateways } from "./environment-gateways.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** The options of the gateway without a configuration: `DATABASE_URL` or `./tollgate.db`, the built-in model, and the accounts the environment has keys for. */
export async function defaultOptions(environment: Environment): Promise<GatewayOptions> {
  return {
    store: await storeOf(environment),
    providers: { sim: simProvider(), ...(await accounts(environment)) },
    prices: catalogPrices(),
  };
}

/** A database of another kind is another program's: its address is left alone. */
async function storeOf({ DATABASE_URL: url }: Environment): Promise<Store> {
  if (url === undefined || !/^postgres(?:ql)?:/.test(url))
    return sqliteStore({ filename: "tollgate.db" });
  const { postgresStore } = await import("@tollgate/store-postgres");
  return postgresStore({ url });
}

async function accounts(environment: Environment): Promise<Readonly<Record<string, Provider>>> {
  const options = Object.entries(environmentGateways(environment));
  if (options.length === 0) return {};
  const { openaiCompatible } = await import("@tollgate/provider-openai");
  return Object.fromEntries(options.map(([gateway, one]) => [gateway, openaiCompatible(one)]));
}
