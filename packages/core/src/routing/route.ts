import type { Provider, StateNeeds } from "../contracts/provider.ts";
import { type ModelId, parseModelId } from "../domain/model-id.ts";
import type { ConnectionOwnership, TargetStrategy } from "../domain/policy-decision.ts";
import { GatewayError } from "../errors/gateway-error.ts";
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

/** Resolves model ids: those of requests, of fallbacks and of `/v1/models`. */
export interface Router {
  /** Null if the id is malformed, or its gateway or model does not exist. */
  find(model: string): ModelRoute | null;
  /** @throws GatewayError `model_not_found` */
  require(model: string): ModelRoute;
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

/** A virtual model with its targets. */
export interface VirtualRoute {
  /** `<virtual gateway>/any/<name>`. */
  readonly id: string;
  readonly by: TargetStrategy;
  readonly targets: readonly RoutedTarget[];
  /** The furthest that any of its targets wants provider state restored. */
  readonly restore: StateNeeds["restore"];
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

/** `virtuals` are the virtual gateways, and not among the providers. */
export function createRouter(
  providers: ReadonlyMap<string, Provider>,
  virtuals: ReadonlyMap<string, Provider>,
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
  const virtual = virtualRoutes(virtuals, { find });
  return {
    find,
    require(text) {
      const route = find(text);
      if (route) return route;
      const gateways = new Set([...providers.keys(), ...virtuals.keys()]);
      throw new GatewayError("model_not_found", notFoundMessage(text, gateways), {
        param: "model",
      });
    },
    virtual: (text) => (virtual.size === 0 ? null : (virtual.get(text) ?? null)),
    virtualModels: [...virtual.values()],
    idOf(gateway, upstreamName) {
      const provider = providers.get(gateway);
      const model = provider && namesOf(gateway, provider).modelNamed(upstreamName);
      return model ? `${gateway}/${model}` : null;
    },
  };
}

function notFoundMessage(text: string, gateways: ReadonlySet<string>): string {
  const model = parseModelId(text);
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
