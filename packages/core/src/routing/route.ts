import type { Provider, StateNeeds } from "../contracts/provider.ts";
import { type ModelAliases, type ModelId, parseModelId } from "../domain/model-id.ts";
import type {
  ConnectionOwnership,
  TargetChoice,
  TargetStrategy,
} from "../domain/policy-decision.ts";
import { GatewayError, type Problem } from "../errors/gateway-error.ts";
import { pathOf, problemAt } from "../input/read.ts";
import { stateNeedsFor } from "./state-needs.ts";
import { createUpstreamNames, type UpstreamName, type UpstreamNames } from "./upstream-names.ts";

/** The provider and model that an id leads to. */
export interface ModelRoute extends UpstreamName {
  readonly model: ModelId;
  readonly provider: Provider;
  readonly connection: ConnectionOwnership;
  /** The provider state that the model gets back. */
  readonly stateNeeds: StateNeeds;
}

/** Names for models with the ids that they lead to. */
export type Aliases = ReadonlyMap<string, string>;

/** Resolves model ids: those of requests, of fallbacks and of `/v1/models`. */
export interface Router {
  /** Null if the id is malformed, or its gateway or model does not exist. */
  find(model: string): ModelRoute | null;
  /**
   * The model of a request that names it by its id.
   * @throws GatewayError `model_not_found`
   */
  require(name: string, own: Aliases | null): ModelRoute;
  /**
   * The targets behind a name of a virtual model, or behind an alias: one of the key's `own`, or else of the gateway. Null if
   * the name is neither, or if the alias leads nowhere.
   */
  targetsOf(name: string, own: Aliases | null): TargetRoute | null;
  /** The id that a name is an alias of; null if it isn't an alias. */
  idBehind(name: string, own: Aliases | null): string | null;
  /** The aliases of a key, and those of the gateway that it doesn't replace. */
  aliasesOf(own: Aliases | null): Aliases;
  /** Null if the id isn't that of a virtual model. */
  virtual(model: string): VirtualRoute | null;
  readonly virtualModels: readonly VirtualRoute[];
  /** The id of a model by its upstream name; null if no id leads to it. */
  idOf(gateway: string, upstreamName: string): string | null;
}

/** A target that can be called. */
export interface RoutedTarget {
  readonly route: ModelRoute;
  readonly weight: number;
}

/** The targets behind a name: those of a virtual model, or the only one of an alias. */
export interface TargetRoute {
  /** `<virtual gateway>/any/<name>`; null if an alias names the model itself. */
  readonly id: string | null;
  readonly by: TargetChoice["by"];
  readonly targets: readonly RoutedTarget[];
  /** The furthest that any of its targets wants provider state restored. */
  readonly restore: StateNeeds["restore"];
}

/** A virtual model with its targets. */
export interface VirtualRoute extends TargetRoute {
  readonly id: string;
  readonly by: TargetStrategy;
}

/** The virtual models by their full ids. Targets that no gateway has are left out. */
export function virtualRoutes(
  virtuals: ReadonlyMap<string, Provider>,
  router: Pick<Router, "find">,
): ReadonlyMap<string, VirtualRoute> {
  const routes = new Map<string, VirtualRoute>();
  for (const [gateway, { virtual = {} }] of virtuals)
    for (const [model, { by, targets }] of Object.entries(virtual)) {
      const id = `${gateway}/${model}`;
      const found = targets.flatMap(({ model: target, weight }) => {
        const route = router.find(target);
        return route === null ? [] : { route, weight };
      });
      routes.set(id, { id, by, targets: found, restore: furthest(found) });
    }
  return routes;
}

function furthest(targets: readonly RoutedTarget[]): StateNeeds["restore"] {
  const needs = targets.map(({ route }) => route.stateNeeds.restore);
  return (["history", "turn"] as const).find((restore) => needs.includes(restore)) ?? "none";
}

const maxRemembered = 512;

/** `virtuals` are the virtual gateways, and not among the providers. `aliases` are those of the gateway. */
export function createRouter(
  providers: ReadonlyMap<string, Provider>,
  virtuals: ReadonlyMap<string, Provider>,
  aliases: ModelAliases,
): Router {
  const names = new Map<string, UpstreamNames>();
  const namesOf = (gateway: string, provider: Provider): UpstreamNames => {
    const known = names.get(gateway) ?? createUpstreamNames(provider);
    names.set(gateway, known);
    return known;
  };

  const lookUp: Router["find"] = (text) => {
    const model = parseModelId(text);
    const provider = model && providers.get(model.gateway);
    if (!model || !provider) return null;
    const name = namesOf(model.gateway, provider).find(`${model.vendor}/${model.model}`);
    const { connection } = provider;
    return name && { model, provider, connection, stateNeeds: needsOf(provider, model), ...name };
  };
  // Most requests name one of a few models.
  const remembered = new Map<string, ModelRoute>();
  const find: Router["find"] = (text) => {
    const known = remembered.get(text);
    if (known) return known;
    const route = lookUp(text);
    if (remembered.size === maxRemembered) remembered.clear();
    if (route) remembered.set(text, route);
    return route;
  };
  const virtualModels = virtualRoutes(virtuals, { find });
  const virtual: Router["virtual"] = (text) => virtualModels.get(text) ?? null;
  const common = new Map(Object.entries(aliases));
  const idBehind: Router["idBehind"] = (name, own) => own?.get(name) ?? common.get(name) ?? null;
  const aliased: Router["targetsOf"] = (name, own) => {
    const id = idBehind(name, own);
    if (id === null) return virtual(name);
    const route = find(id);
    if (route === null) return virtual(id);
    const { restore } = route.stateNeeds;
    return { id: null, by: "alias", targets: [{ route, weight: 1 }], restore };
  };
  const hasNames = virtualModels.size > 0 || common.size > 0;
  return {
    find,
    require(name, own) {
      const route = find(name);
      if (route) return route;
      const gateways = new Set([...providers.keys(), ...virtuals.keys()]);
      const message = notFoundMessage(name, idBehind(name, own), gateways);
      throw new GatewayError("model_not_found", message, { param: "model" });
    },
    targetsOf: (name, own) => (own === null && !hasNames ? null : aliased(name, own)),
    idBehind,
    aliasesOf: (own) => (own === null ? common : new Map([...common, ...own])),
    virtual,
    virtualModels: [...virtualModels.values()],
    idOf(gateway, upstreamName) {
      const provider = providers.get(gateway);
      const model = provider && namesOf(gateway, provider).modelNamed(upstreamName);
      return model ? `${gateway}/${model}` : null;
    },
  };
}

/** The problems of aliases that lead to no model. */
export function aliasProblems(
  aliases: ModelAliases,
  { find, virtual }: Pick<Router, "find" | "virtual">,
): readonly Problem[] {
  return Object.entries(aliases).flatMap(([name, id]) =>
    find(id) === null && virtual(id) === null
      ? [problemAt(pathOf("aliases", [name]), `leads to ${id}, which no gateway has`)]
      : [],
  );
}

/** `id` is the one that the name is an alias of; null if it isn't an alias. */
function notFoundMessage(name: string, id: string | null, gateways: ReadonlySet<string>): string {
  if (id !== null)
    return `The alias ${name} leads to ${id}, which no gateway has. Ask an administrator to change it.`;
  const model = parseModelId(name);
  if (model === null)
    return "A model id must be <gateway>/<vendor>/<model>, with at most 255 characters and no white space.";
  return gateways.has(model.gateway)
    ? "Unknown model. GET /v1/models lists the available models."
    : "Unknown gateway. A model id starts with the name of a gateway.";
}

export function connectionRequired(): GatewayError {
  return new GatewayError(
    "connection_required",
    "This gateway requires your organization's own Gateway API key. Ask an administrator to set one.",
    { param: "model" },
  );
}

function needsOf(provider: Provider, { vendor, model }: ModelId): StateNeeds {
  const name = `${vendor}/${model}`;
  return provider.stateNeeds?.(name) ?? stateNeedsFor(name);
}
