import type { VirtualModels } from "@tollgate/core";
import {
  duration,
  gatewaySettings,
  type JsonSchema,
  jsonSchemaOf,
  type Problem,
  pathOf,
  priceTableSchema,
  type Schema,
  tryRead,
  virtualModelsSchema,
  wholeNumber,
  z,
} from "@tollgate/core/schemas";
import { serveMembers } from "@tollgate/node";
import type { AnthropicProviderOptions } from "@tollgate/provider-anthropic";
import type { OpenaiCompatibleOptions } from "@tollgate/provider-openai";
import type { SimOptions } from "@tollgate/provider-sim";
import type { PostgresStoreOptions } from "@tollgate/store-postgres";
import { knownUpstreams, olderDialect, optionsOfUpstream } from "./environment-gateways.ts";

/** The schemas of the packages. Only those a file needs are loaded: a database client is slow to load. */
const schemas = {
  sqlite: async () => (await import("@tollgate/store-sqlite")).sqliteFileSchema,
  postgres: async () => (await import("@tollgate/store-postgres")).postgresAddressSchema,
  memory: async () => z.strictObject({}),
  sim: async () => (await import("@tollgate/provider-sim")).simSchema,
  virtual: async () => z.strictObject({ models: virtualModelsSchema }),
  anthropic: async () => (await import("@tollgate/provider-anthropic")).anthropicSchema,
  openai: async () => (await import("@tollgate/provider-openai")).openaiCompatibleSchema,
};

const storeTypes = ["sqlite", "postgres", "memory"] as const;

/** The defaults of a provider type; members of the file override them. */
type Defaults = Partial<OpenaiCompatibleOptions>;

const upstreams: ReadonlyMap<string, Defaults> = new Map<string, Defaults>([
  ["openai-compatible", {}],
  ["azure", { vendor: "openai" }],
  [
    "ollama",
    { ...olderDialect, baseURL: "http://127.0.0.1:11434/v1", apiKey: null, vendor: "ollama" },
  ],
  ...knownUpstreams.map((upstream) => [upstream.gateway, optionsOfUpstream(upstream)] as const),
]);

const providerTypes = ["sim", "virtual", "anthropic", ...upstreams.keys()];

const typed = (types: readonly string[]) => z.looseObject({ type: z.enum(types) });

/** A configuration file. Stores and providers have their own schemas. */
const fileSchema = z.strictObject({
  ...gatewaySettings,
  $schema: z.exactOptional(z.string()),
  store: typed(storeTypes),
  providers: z.record(z.string(), typed(providerTypes)),
  prices: z.exactOptional(z.union([z.literal("catalog"), priceTableSchema])),
  secrets: z.exactOptional(
    z.strictObject({ current: z.string(), keys: z.record(z.string(), z.string()) }),
  ),
  evidence: z.exactOptional(
    z.strictObject({
      name: z.string(),
      privateKey: z.string(),
      alarmAfter: z.exactOptional(duration),
    }),
  ),
  serve: z.exactOptional(
    z.strictObject({
      ...serveMembers,
      drainDelay: z.exactOptional(wholeNumber(0, 3_600)),
      closeWithin: z.exactOptional(wholeNumber(1, 3_600)),
      log: z.exactOptional(z.enum(["warnings", "requests"])),
    }),
  ),
});

/** The settings of `tollgate serve` in a configuration file. */
export type ServeSettings = NonNullable<z.output<typeof fileSchema>["serve"]>;

/** A store of a configuration file. */
export type StoreData =
  | { readonly type: "sqlite"; readonly options: { readonly filename: string } }
  | {
      readonly type: "postgres";
      readonly options: PostgresStoreOptions & { readonly url: string };
    }
  | { readonly type: "memory"; readonly options: object };

/** A provider of a configuration file. */
export type ProviderData =
  | { readonly type: "sim"; readonly options: SimOptions }
  | { readonly type: "virtual"; readonly options: { readonly models: VirtualModels } }
  | { readonly type: "anthropic"; readonly options: AnthropicProviderOptions }
  | { readonly type: "openai-compatible"; readonly options: OpenaiCompatibleOptions };

/** A configuration file that passed every schema. */
export interface ConfigurationData
  extends Omit<z.output<typeof fileSchema>, "$schema" | "store" | "providers"> {
  readonly store: StoreData;
  readonly providers: ReadonlyMap<string, ProviderData>;
}

/** The result of reading a configuration file: its data, or every problem with its path. */
export type ConfigurationRead =
  | { readonly value: ConfigurationData; readonly problems: readonly [] }
  | { readonly value: null; readonly problems: readonly Problem[] };

/** Reads a configuration file whose variables are filled in. */
export async function readConfiguration(data: unknown): Promise<ConfigurationRead> {
  const problems: Problem[] = [];
  /** Collects problems, so every part of a file is checked. */
  const check = <Value>(schema: Schema<Value>, input: unknown, path: string): Value | null => {
    const result = tryRead(schema, input, { noun: "option", path });
    problems.push(...result.problems);
    return result.value;
  };
  const file = check(fileSchema, data, "");
  const input = members(data);
  const store = await readStore(input["store"], check);
  const providers = new Map<string, ProviderData>();
  for (const [gateway, one] of Object.entries(members(input["providers"]))) {
    const provider = await readProvider(one, pathOf("providers", [gateway]), check);
    if (provider !== null) providers.set(gateway, provider);
  }
  if (file === null || store === null || problems.length > 0) return { value: null, problems };
  const { $schema: _editors, ...settings } = file;
  return { value: { ...settings, store, providers }, problems: [] };
}

type Check = <Value>(schema: Schema<Value>, input: unknown, path: string) => Value | null;

/** The members of an object. If it isn't one, the schema of the file reports that. */
function members(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : {};
}

async function readStore(input: unknown, check: Check): Promise<StoreData | null> {
  const { type, ...rest } = members(input);
  if (type === "sqlite") return withOptions(type, check(await schemas.sqlite(), rest, "store"));
  if (type === "postgres") return withOptions(type, check(await schemas.postgres(), rest, "store"));
  return type === "memory" ? withOptions(type, check(await schemas.memory(), rest, "store")) : null;
}

async function readProvider(
  input: unknown,
  path: string,
  check: Check,
): Promise<ProviderData | null> {
  const { type, ...rest } = members(input);
  if (type === "sim") return withOptions(type, check(await schemas.sim(), rest, path));
  if (type === "virtual") return withOptions(type, check(await schemas.virtual(), rest, path));
  // Asking an upstream for its own list of models takes the platform's credential.
  const listModels =
    type !== "openai-compatible" && rest["connection"] !== "customer" ? { listModels: true } : {};
  if (type === "anthropic")
    return withOptions(type, check(await schemas.anthropic(), { ...listModels, ...rest }, path));
  const defaults = typeof type === "string" ? upstreams.get(type) : undefined;
  if (defaults === undefined) return null;
  const options = { ...defaults, ...listModels, ...rest };
  return withOptions("openai-compatible", check(await schemas.openai(), options, path));
}

function withOptions<Type extends string, Options>(type: Type, options: Options | null) {
  return options === null ? null : { type, options };
}

/** The JSON Schema (draft 2020-12) of configuration files, for editors. */
export async function configurationJsonSchema(): Promise<JsonSchema> {
  const file = jsonSchemaOf(fileSchema);
  const store = await Promise.all(
    storeTypes.map(async (type) => typedSchema([type], await schemas[type]())),
  );
  const sim = typedSchema(["sim"], await schemas.sim());
  const virtual = typedSchema(["virtual"], await schemas.virtual());
  const anthropic = typedSchema(["anthropic"], await schemas.anthropic());
  const upstream = typedSchema([...upstreams.keys()], await schemas.openai());
  const known = [...upstreams].filter(([, { baseURL }]) => baseURL !== undefined);
  const isKnown = { properties: { type: { enum: known.map(([type]) => type) } } };
  const providers = [
    sim,
    virtual,
    anthropic,
    { ...upstream, required: ["type"], anyOf: [isKnown, { required: ["baseURL"] }] },
  ];
  return {
    ...file,
    title: "Tollgate configuration",
    properties: {
      ...members(file["properties"]),
      store: { anyOf: store },
      providers: { type: "object", minProperties: 1, additionalProperties: { anyOf: providers } },
    },
  };
}

/** A schema of options with the `type` that selects it. */
function typedSchema(types: readonly string[], schema: Schema<unknown>): JsonSchema {
  const { $schema: _dialect, required, properties, ...rest } = jsonSchemaOf(schema);
  return {
    ...rest,
    properties: { type: { enum: types }, ...members(properties) },
    required: ["type", ...(Array.isArray(required) ? required : [])],
  };
}
