import { text, tryRead, z } from "@tollgate/core/schemas";
import { knownUpstreams } from "../configuration/environment-gateways.ts";
import { printable } from "../table.ts";

/** A configuration file of Tollgate, and what it couldn't take over. */
export interface Imported {
  readonly configuration: Readonly<Record<string, unknown>>;
  /** One sentence for each, with its path in the imported file. */
  readonly warnings: readonly string[];
}

type Params = Readonly<Record<string, unknown>>;

const anything = z.exactOptional(z.nullable(z.looseObject({})));

const fileSchema = z.looseObject({
  model_list: z
    .array(
      z.looseObject({
        model_name: z.string(),
        litellm_params: z.looseObject({ model: z.string() }),
      }),
    )
    .check(z.maxLength(1_000)),
  router_settings: anything,
  litellm_settings: anything,
});

/** LiteLLM's providers that have another name here. */
const types: ReadonlyMap<string, string> = new Map([
  ...knownUpstreams.map(({ gateway }) => [gateway, gateway] as const),
  ["together_ai", "together"],
  ["fireworks_ai", "fireworks"],
  ["azure", "azure"],
  ["anthropic", "anthropic"],
  ["ollama", "ollama"],
  ["ollama_chat", "ollama"],
  ["hosted_vllm", "openai-compatible"],
]);

const manyVendors = new Set(["openrouter", "together"]);
const withoutKey = new Set(["ollama", "openai-compatible"]);
const understood = new Set([
  ...["model", "api_key", "api_base", "rpm", "tpm", "weight"],
  ...["input_cost_per_token", "output_cost_per_token"],
]);
const periods: ReadonlyMap<unknown, string> = new Map([
  ...(["1h", "60m"] as const).map((text) => [text, "hour"] as const),
  ...(["1d", "24h"] as const).map((text) => [text, "day"] as const),
  ["7d", "week"],
  ...(["30d", "1mo"] as const).map((text) => [text, "month"] as const),
]);

/** A name of an alias, or of a model of a virtual gateway. */
const plainName = text((name) => /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(name), "");

/** The most that a virtual gateway takes. */
const maxTargets = 16;

interface Gateway {
  /** Tells deployments on one account from those on another. */
  readonly identity: string;
  readonly options: Readonly<Record<string, unknown>>;
  readonly models: Map<string, object>;
}

/**
 * Makes a configuration file from LiteLLM's `config.yaml`. A secret is never copied: `os.environ/NAME` becomes `${NAME}`, and a
 * literal key a variable to set.
 */
export function importLitellm(file: unknown): Imported {
  const { value, problems } = tryRead(fileSchema, file, { noun: "member" });
  if (value === null)
    return { configuration: {}, warnings: problems.map(({ message }) => message) };
  const { model_list, router_settings, litellm_settings, ...others } = value;
  const warnings = Object.keys(others).map((name) => `${printable(name)} was left out.`);
  const gateways = new Map<string, Gateway>();
  const deployments = new Map<string, { readonly model: string; readonly weight: number }[]>();
  const rateLimits: object[] = [];
  for (const [at, { model_name: name, litellm_params: params, ...rest }] of model_list.entries()) {
    const path = `model_list[${at}]`;
    for (const member of Object.keys(rest))
      warnings.push(`${path}.${printable(member)} was left out.`);
    const model = addDeployment(gateways, params, `${path}.litellm_params`, warnings);
    if (model === null) continue;
    const { weight, rpm, tpm } = params;
    rateLimits.push(...limitsOf(model, at, { requests: rpm, tokens: tpm }));
    const group = deployments.get(name) ?? [];
    deployments.set(name, [
      ...group,
      { model, weight: isCount(weight) && weight > 0 ? weight : 1 },
    ]);
  }
  const { aliases, virtual } = namesOf(deployments, warnings);
  const budgets = budgetsOf(litellm_settings ?? {}, warnings);
  addGroupAliases(aliases, router_settings ?? {}, warnings);
  const providers = [...gateways].map(([gateway, { options, models }]) => [
    gateway,
    { ...options, models: Object.fromEntries(models) },
  ]);
  return {
    configuration: {
      store: { type: "sqlite", filename: "tollgate.db" },
      providers: {
        ...Object.fromEntries(providers),
        ...(virtual.size === 0
          ? {}
          : { balanced: { type: "virtual", models: Object.fromEntries(virtual) } }),
      },
      ...(aliases.size === 0 ? {} : { aliases: Object.fromEntries(aliases) }),
      ...(rateLimits.length === 0 ? {} : { rateLimits }),
      ...(budgets.length === 0 ? {} : { budgets }),
    },
    warnings,
  };
}

/** Adds the gateway and the model of a deployment. Returns the model's full id; null if its provider isn't known. */
function addDeployment(
  gateways: Map<string, Gateway>,
  params: Params & { readonly model: string },
  path: string,
  warnings: string[],
): string | null {
  const [first = "", ...rest] = params.model.split("/");
  const provider = rest.length === 0 ? "openai" : first;
  const name = rest.length === 0 ? first : rest.join("/");
  const type = types.get(provider);
  if (type === undefined || name.includes("*")) {
    warnings.push(`${path}.model ${printable(params.model)} was left out: it has no counterpart.`);
    return null;
  }
  const { input_cost_per_token: input, output_cost_per_token: output } = params;
  const isPriced = typeof input === "number" && typeof output === "number";
  const lost = new Set([
    ...["rpm", "tpm", "weight"].filter((member) => !isCount(params[member])),
    ...(params["weight"] === 0 ? ["weight"] : []),
    ...(isPriced ? [] : ["input_cost_per_token", "output_cost_per_token"]),
  ]);
  for (const [member, given] of Object.entries(params))
    if (!understood.has(member) || (lost.has(member) && given !== null))
      warnings.push(`${path}.${printable(member)} was left out.`);
  const gateway = gatewayOf(gateways, type, params, path, warnings);
  const prices = isPriced ? { input: perMillion(input), output: perMillion(output) } : {};
  const vendor = type === "azure" ? "openai" : type === "openai-compatible" ? "local" : type;
  const id = manyVendors.has(type) ? name : `${vendor}/${name}`;
  gateways.get(gateway)?.models.set(id, prices);
  return `${gateway}/${id}`;
}

/** Finds the gateway with the same address and key, or adds one. */
function gatewayOf(
  gateways: Map<string, Gateway>,
  type: string,
  { api_base: base, api_key: key }: Params,
  path: string,
  warnings: string[],
): string {
  const taken = [...gateways.keys()].filter((name) => name.replace(/-\d+$/, "") === type).length;
  const fresh = taken === 0 ? type : `${type}-${taken + 1}`;
  const prefix = fresh.toUpperCase().replaceAll("-", "_");
  const notes: string[] = [];
  const variable = (value: unknown, member: string, fallback: string): string => {
    const found = typeof value === "string" ? /^os\.environ\/([A-Za-z_]\w*)$/.exec(value) : null;
    if (found) return `\${${found[1]}}`;
    if (value != null)
      notes.push(`${path}.${member} has a secret, which was not copied: put it in ${fallback}.`);
    return `\${${fallback}}`;
  };
  const address = typeof base === "string" ? base : null;
  const isPlain = address !== null && /^https?:\/\/[^@\s?#$]+$/.test(address);
  const baseURL =
    address === null
      ? {}
      : { baseURL: isPlain ? address : variable(base, "api_base", `${prefix}_BASE_URL`) };
  const apiKey =
    key == null && withoutKey.has(type) ? null : variable(key, "api_key", `${prefix}_API_KEY`);
  if (type === "azure")
    notes.push(`${path}.api_base is an Azure address: make baseURL end in /openai/v1.`);
  if ((type === "anthropic" || type === "ollama") && address !== null)
    notes.push(`${path}.api_base has no path in LiteLLM: make baseURL end in /v1.`);
  const options = {
    type,
    ...baseURL,
    apiKey,
    ...(type === "openai-compatible" ? { vendor: "local" } : {}),
  };
  // Literal keys differ, though both become a variable.
  const sameKey = typeof key === "string" && !key.startsWith("os.environ/") ? key : apiKey;
  const identity = JSON.stringify([type, base ?? null, sameKey]);
  for (const [name, gateway] of gateways) if (gateway.identity === identity) return name;
  warnings.push(...notes);
  gateways.set(fresh, { identity, options, models: new Map() });
  return fresh;
}

/** From dollars per token to dollars per million, as a decimal string without an exponent. */
function perMillion(perToken: number): string {
  return (perToken * 1e6).toFixed(9).replace(/\.?0{1,9}$/, "");
}

function limitsOf(model: string, at: number, limits: Params): readonly object[] {
  return Object.entries(limits).flatMap(([unit, limit]) =>
    isCount(limit)
      ? [{ id: `litellm-${at}-${unit}`, scope: { model }, limit: { [unit]: limit }, per: "minute" }]
      : [],
  );
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 && value <= 1e9;
}

/** One deployment of a name is an alias for it; several are a model of a virtual gateway. */
function namesOf(
  deployments: ReadonlyMap<string, readonly { readonly model: string; readonly weight: number }[]>,
  warnings: string[],
) {
  const aliases = new Map<string, string>();
  const virtual = new Map<string, object>();
  for (const [name, targets] of deployments) {
    const [only, ...others] = targets;
    if (targets.length > maxTargets)
      warnings.push(
        `model_name ${printable(name)} has ${targets.length} deployments: the ${maxTargets + 1}th and later were left out.`,
      );
    if (tryRead(plainName, name).value === null)
      warnings.push(
        `model_name ${printable(name)} was left out: call ${targets.map(({ model }) => model).join(" or ")}.`,
      );
    else if (others.length > 0) {
      virtual.set(name, { targets: targets.slice(0, maxTargets), by: "weight" });
      aliases.set(name, `balanced/any/${name}`);
    } else if (only !== undefined) aliases.set(name, only.model);
  }
  return { aliases, virtual };
}

function addGroupAliases(aliases: Map<string, string>, settings: Params, warnings: string[]): void {
  const { model_group_alias: groups, ...others } = settings;
  for (const name of Object.keys(others))
    warnings.push(`router_settings.${printable(name)} was left out.`);
  for (const [name, group] of Object.entries(groups ?? {})) {
    const model = typeof group === "string" ? aliases.get(group) : undefined;
    if (model === undefined || tryRead(plainName, name).value === null)
      warnings.push(`router_settings.model_group_alias.${printable(name)} was left out.`);
    else aliases.set(name, model);
  }
}

function budgetsOf(settings: Params, warnings: string[]): readonly object[] {
  const { max_budget: usd, budget_duration: duration, ...others } = settings;
  for (const name of Object.keys(others))
    warnings.push(`litellm_settings.${printable(name)} was left out.`);
  if (usd != null && typeof usd !== "number")
    warnings.push("litellm_settings.max_budget was left out.");
  if (typeof usd !== "number") return [];
  const period = duration == null ? "total" : periods.get(duration);
  if (period === undefined) {
    warnings.push(
      `litellm_settings.budget_duration ${printable(duration)} has no counterpart: the budget was left out.`,
    );
    return [];
  }
  if (period !== "total")
    warnings.push(`litellm_settings.budget_duration became a calendar ${period} in UTC.`);
  return [{ id: "litellm-max-budget", limit: { usd }, period }];
}
