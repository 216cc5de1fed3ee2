import { ed25519Signer, GatewayError, type GatewayOptions, virtual } from "@tollgate/core";
import { definePolicy, type Policy } from "@tollgate/core/policy";
import type { Provider } from "@tollgate/core/provider";
import type { Store } from "@tollgate/core/store";
import type { ConfigurationData, ProviderData, StoreData } from "./data-schema.ts";

/** Makes the options of `createGateway` from a configuration file. Loads only the packages that it uses. */
export async function optionsOf(data: ConfigurationData): Promise<GatewayOptions> {
  const { store, providers, policy, prices = "catalog", serve: _server, ...rest } = data;
  const { evidence, ...settings } = rest;
  const made = await Promise.all(
    [...providers].map(async ([gateway, one]) => [gateway, await providerOf(one)] as const),
  );
  return {
    ...settings,
    store: await storeOf(store),
    providers: Object.fromEntries(made),
    ...(policy === undefined ? {} : { policy: policyOf(policy) }),
    prices: prices === "catalog" ? await catalog() : prices,
    ...(evidence === undefined ? {} : { evidence: evidenceOf(evidence) }),
  };
}

function evidenceOf({
  name,
  privateKey,
  ...settings
}: NonNullable<ConfigurationData["evidence"]>): NonNullable<GatewayOptions["evidence"]> {
  return { ...settings, signer: inPlace("evidence", () => ed25519Signer({ name, privateKey })) };
}

function policyOf(policy: NonNullable<ConfigurationData["policy"]>): Policy {
  return inPlace("policy", () => definePolicy(policy));
}

/** A factory finds what no schema does, but doesn't know its place in the file, so this adds it to the paths. */
function inPlace<Made>(place: string, make: () => Made): Made {
  try {
    return make();
  } catch (thrown) {
    if (!(thrown instanceof GatewayError)) throw thrown;
    const problems = thrown.problems.map(({ path, message }) => ({
      path: `${place}.${path}`,
      message: message.replace(path, () => `${place}.${path}`),
    }));
    throw new GatewayError(thrown.code, thrown.message, { problems });
  }
}

async function storeOf(store: StoreData): Promise<Store> {
  if (store.type === "postgres") {
    const { url, ...options } = store.options;
    const { postgresStore } = await import("@tollgate/store-postgres");
    return postgresStore({ url }, options);
  }
  if (store.type === "sqlite") {
    const { sqliteStore } = await import("@tollgate/store-sqlite");
    return sqliteStore(store.options);
  }
  const { memoryStore } = await import("@tollgate/store-memory");
  return memoryStore();
}

async function providerOf({ type, options }: ProviderData): Promise<Provider> {
  if (type === "sim") {
    const { simProvider } = await import("@tollgate/provider-sim");
    return simProvider(options);
  }
  if (type === "virtual") return virtual(options.models);
  if (type === "anthropic") {
    const { anthropic } = await import("@tollgate/provider-anthropic");
    return anthropic(options);
  }
  const { openaiCompatible } = await import("@tollgate/provider-openai");
  return openaiCompatible(options);
}

async function catalog() {
  const { catalogPrices } = await import("@tollgate/prices");
  return catalogPrices();
}
