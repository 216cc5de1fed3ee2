import type { Provider } from "../contracts/provider.ts";
import { type ModelId, parseModelId } from "../domain/model-id.ts";
import type { ConnectionOwnership } from "../domain/policy-decision.ts";
import { GatewayError } from "../errors/gateway-error.ts";

/** Where a model id leads. */
export interface Route {
  readonly model: ModelId;
  readonly provider: Provider;
  readonly connection: ConnectionOwnership;
}

/**
 * The route of a model id `<gateway>/<vendor>/<model>`; a model its gateway does not list is still routed.
 * @throws GatewayError `model_not_found` when it has not three parts or names no gateway.
 */
export function routeOf(model: string, providers: ReadonlyMap<string, Provider>): Route {
  const route = findRoute(model, providers);
  if (route) return route;
  throw new GatewayError(
    "model_not_found",
    parseModelId(model)
      ? "The model's gateway does not exist."
      : "A model is named <gateway>/<vendor>/<model>, in at most 255 characters.",
    { param: "model" },
  );
}

/** The route of a model id, or null where it leads nowhere. */
export function findRoute(model: string, providers: ReadonlyMap<string, Provider>): Route | null {
  const id = parseModelId(model);
  const provider = id && providers.get(id.gateway);
  return id && provider ? { model: id, provider, connection: provider.connection } : null;
}

export function connectionRequired(): GatewayError {
  return new GatewayError(
    "connection_required",
    "This gateway is reached with your organization's own Gateway API key, and it has none.",
    { param: "model" },
  );
}
