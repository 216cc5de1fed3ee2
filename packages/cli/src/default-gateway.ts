import { createGateway, type Gateway } from "@tollgate/core";
import type { Provider } from "@tollgate/core/provider";
import { catalogPrices } from "@tollgate/prices";
import { simProvider } from "@tollgate/provider-sim";
import { sqliteStore } from "@tollgate/store-sqlite";
import { environmentGateways } from "./environment-gateways.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** The gateway without a configuration: `./tollgate.db`, the built-in model, and the accounts the environment has keys for. */
export async function createDefaultGateway(environment: Environment): Promise<Gateway> {
  return createGateway({
    store: sqliteStore({ filename: "tollgate.db" }),
    providers: { sim: simProvider(), ...(await accounts(environment)) },
    prices: catalogPrices(),
  });
}

async function accounts(environment: Environment): Promise<Readonly<Record<string, Provider>>> {
  const options = Object.entries(environmentGateways(environment));
  if (options.length === 0) return {};
  const { openaiCompatible } = await import("@tollgate/provider-openai");
  return Object.fromEntries(options.map(([gateway, one]) => [gateway, openaiCompatible(one)]));
}
