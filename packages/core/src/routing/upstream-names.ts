import type { Provider } from "../contracts/provider.ts";
import { parseModelId } from "../domain/model-id.ts";
import { lowerAscii } from "../domain/pattern.ts";

/** The options that define a gateway's models and their upstream names. */
type Naming = Pick<Provider, "models" | "open" | "vendor">;

/** The upstream name of a model, and whether the gateway lists it. */
export interface UpstreamName {
  readonly listed: boolean;
  readonly upstreamName: string;
}

/** The names of a gateway's models. Ids are `<vendor>/<model>` here. Two models never share an upstream name. */
export interface UpstreamNames {
  /** Null for a model that the gateway does not have. */
  find(model: string): UpstreamName | null;
  /** The model with this upstream name; null for none. */
  modelNamed(upstreamName: string): string | null;
}

/**
 * Listed models have the names from their table. Other names follow from the id: models of `vendor` lose the vendor and
 * must not contain another `/`; all others keep their vendor. So the two kinds never collide. An unlisted id is unknown if
 * it leads to a listed model's name, or differs from a listed id only in case: otherwise it would escape that model's
 * prices, rules and budgets.
 */
export function createUpstreamNames(naming: Naming): UpstreamNames {
  const { open, vendor } = naming;
  const listed = new Map<string, string>();
  const taken = new Set<string>();
  for (const [model, configured] of Object.entries(naming.models ?? {})) {
    const upstreamName = configured?.upstreamName ?? nameOf(model, vendor);
    if (upstreamName === null) continue;
    listed.set(model, upstreamName);
    taken.add(lowerAscii(upstreamName));
  }
  const listedInAnyCase = new Set([...listed.keys()].map(lowerAscii));
  const modelOf = new Map([...listed].map(([model, name]) => [name, model]));

  const find = (model: string): UpstreamName | null => {
    const own = listed.get(model);
    if (own !== undefined) return { listed: true, upstreamName: own };
    const upstreamName = open ? nameOf(model, vendor) : null;
    return upstreamName === null ||
      listedInAnyCase.has(lowerAscii(model)) ||
      taken.has(lowerAscii(upstreamName))
      ? null
      : { listed: false, upstreamName };
  };
  return {
    find,
    modelNamed(name) {
      const own = modelOf.get(name);
      if (own !== undefined) return own;
      const model = vendor == null || name.includes("/") ? name : `${vendor}/${name}`;
      return isModel(model) && find(model)?.upstreamName === name ? model : null;
    },
  };
}

/** The problems of a gateway's model names, one sentence each. */
export function namingProblems(naming: Naming): readonly string[] {
  const { models = {}, open, vendor } = naming;
  const problems: string[] = [];
  if (typeof open !== "boolean") problems.push("open must be true or false.");
  if (
    vendor !== null &&
    !(typeof vendor === "string" && isModel(`${vendor}/m`) && !/\//.test(vendor))
  )
    problems.push("vendor must be null or a vendor such as openai, without a slash.");
  if (open === false && Object.keys(models).length === 0)
    problems.push(
      "The provider lists no models and isn't open, so it could serve nothing. List models, or set open to true.",
    );
  const ids = new Map<string, string>();
  const names = new Map<string, string>();
  for (const [model, configured] of Object.entries(models)) {
    problems.push(...pairProblem(ids, model, model, "differ by case only"));
    const name = configured?.upstreamName ?? nameOf(model, vendor);
    if (name === null)
      problems.push(
        `models: ${JSON.stringify(model)} contains another / after the vendor, which the option vendor removes. Set its upstreamName.`,
      );
    else if (!isUpstreamName(name))
      problems.push(
        `models: the upstreamName of ${JSON.stringify(model)} must be 1 to ${maxName} characters without white space or control characters.`,
      );
    else
      problems.push(
        ...pairProblem(names, name, model, `are both ${JSON.stringify(name)} upstream`),
      );
  }
  return problems;
}

const maxName = 2_048;

function isUpstreamName(name: unknown): boolean {
  return typeof name === "string" && name.length <= maxName && /^[^\s\p{C}]+$/u.test(name);
}

function isModel(model: string): boolean {
  return parseModelId(`g/${model}`) !== null;
}

/** Null if a model of the vendor would still contain a `/`. */
function nameOf(model: string, vendor: string | null): string | null {
  if (vendor == null || !model.startsWith(`${vendor}/`)) return model;
  const name = model.slice(vendor.length + 1);
  return name.includes("/") ? null : name;
}

/** A problem if another model had the same value before, ignoring case. */
function pairProblem(
  seen: Map<string, string>,
  value: string,
  model: string,
  what: string,
): readonly string[] {
  const other = seen.get(lowerAscii(value));
  seen.set(lowerAscii(value), model);
  return other === undefined || other === model
    ? []
    : [`models: ${JSON.stringify(other)} and ${JSON.stringify(model)} ${what}.`];
}
