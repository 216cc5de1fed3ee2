import { GatewayError } from "../errors/gateway-error.ts";
import type { GatewayRequest } from "../http/gateway-request.ts";
import { routePath } from "../http/route-path.ts";
import { chatCompletions } from "./chat-completions.ts";
import { createResponse } from "./create-response.ts";
import type { EndpointHandler } from "./endpoint.ts";
import { getModel, listModels } from "./models.ts";
import { deleteResponse, getResponse, listInputItems, notEmulated } from "./stored-responses.ts";

interface HttpRoute {
  /** Matches the path after `/v1/`; a group is the endpoint's tail. */
  readonly path: RegExp;
  readonly methods: Readonly<Record<string, EndpointHandler>>;
}

/** Every route there is. None reaches a provider but by the one line. */
const routes: readonly HttpRoute[] = [
  { path: /^chat\/completions$/, methods: { POST: chatCompletions } },
  { path: /^responses$/, methods: { POST: createResponse } },
  { path: /^responses\/compact$/, methods: { POST: notEmulated } },
  { path: /^responses\/([^/]+)$/, methods: { GET: getResponse, DELETE: deleteResponse } },
  { path: /^responses\/([^/]+)\/input_items$/, methods: { GET: listInputItems } },
  { path: /^responses\/([^/]+)\/cancel$/, methods: { POST: notEmulated } },
  { path: /^models$/, methods: { GET: listModels } },
  { path: /^models\/(.+)$/, methods: { GET: getModel } },
];

/**
 * The endpoint of a request and the tail of its path.
 * @throws GatewayError `not_found`, or `method_not_allowed` with `Allow`.
 */
export function endpointOf(request: GatewayRequest): {
  readonly endpoint: EndpointHandler;
  readonly tail: string;
} {
  const path = routePath(request.url);
  const [route, match] = find(path ?? "");
  if (!route) throw new GatewayError("not_found", "There is nothing at this path.");
  const endpoint = Object.hasOwn(route.methods, request.method)
    ? route.methods[request.method]
    : undefined;
  if (!endpoint) {
    throw new GatewayError("method_not_allowed", "This path does not take this method.", {
      headers: { allow: Object.keys(route.methods).join(", ") },
    });
  }
  return { endpoint, tail: match?.[1] ?? "" };
}

/** The tail of a request's path for an endpoint that its host has routed to by itself; empty where it has none. */
export function tailFor(endpoint: EndpointHandler, request: GatewayRequest): string {
  const path = routePath(request.url) ?? "";
  const matches = routes
    .filter(({ methods }) => Object.values(methods).includes(endpoint))
    .flatMap((route) => route.path.exec(path) ?? []);
  return matches[1] ?? "";
}

function find(path: string): readonly [HttpRoute | null, RegExpExecArray | null] {
  for (const route of routes) {
    const match = route.path.exec(path);
    if (match) return [route, match];
  }
  return [null, null];
}
