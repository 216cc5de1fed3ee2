import { GatewayError } from "../errors/gateway-error.ts";
import { routeOf } from "../http/route.ts";
import { chatCompletions } from "./chat-completions.ts";
import type { Endpoint } from "./endpoint.ts";
import { getModel, listModels } from "./models.ts";

interface Route {
  /** The path after `/v1/`; one that ends in `/` takes the rest of the path as its tail. */
  readonly path: string;
  readonly methods: Readonly<Record<string, Endpoint>>;
}

/** Every route there is. None reaches a provider but by the one line. */
const routes: readonly Route[] = [
  { path: "chat/completions", methods: { POST: chatCompletions } },
  { path: "models", methods: { GET: listModels } },
  { path: "models/", methods: { GET: getModel } },
];

/**
 * The endpoint of a request and the tail of its path.
 * @throws GatewayError `not_found`, or `method_not_allowed` with `Allow`.
 */
export function endpointOf(request: Request): {
  readonly endpoint: Endpoint;
  readonly tail: string;
} {
  const path = routeOf(request.url);
  const route = path === null ? undefined : routes.find((candidate) => fits(candidate.path, path));
  if (path === null || !route)
    throw new GatewayError("not_found", "There is nothing at this path.");
  const endpoint = Object.hasOwn(route.methods, request.method)
    ? route.methods[request.method]
    : undefined;
  if (!endpoint) {
    throw new GatewayError("method_not_allowed", "This path does not take this method.", {
      headers: { allow: Object.keys(route.methods).join(", ") },
    });
  }
  return { endpoint, tail: path.slice(route.path.length) };
}

function fits(route: string, path: string): boolean {
  return route.endsWith("/")
    ? path.startsWith(route) && path.length > route.length
    : path === route;
}
