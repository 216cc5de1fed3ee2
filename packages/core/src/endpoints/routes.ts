import type { EndpointName } from "../domain/step.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { GatewayRequest } from "../http/gateway-request.ts";
import { pathAfterV1 } from "../http/path-after-v1.ts";
import { getKey } from "./calling-key.ts";
import { chatCompletions } from "./chat-completions.ts";
import { createResponse } from "./create-response.ts";
import { createEmbeddings } from "./embeddings.ts";
import type { EndpointHandler } from "./endpoint.ts";
import { countMessageTokens, createMessage } from "./messages.ts";
import { getModel, listModels } from "./models.ts";
import { deleteResponse, getResponse, listInputItems, notEmulated } from "./stored-responses.ts";

interface HttpRoute {
  /** Matches the path after `/v1/`. A group captures the endpoint's tail. */
  readonly path: RegExp;
  readonly methods: Readonly<Record<string, EndpointHandler>>;
}

/** The routes that open Steps. */
const governed: Readonly<Record<EndpointName, HttpRoute>> = {
  chat_completions: { path: /^chat\/completions$/, methods: { POST: chatCompletions } },
  responses: { path: /^responses$/, methods: { POST: createResponse } },
  messages: { path: /^messages$/, methods: { POST: createMessage } },
  embeddings: { path: /^embeddings$/, methods: { POST: createEmbeddings } },
};

/** All routes. Only the line reaches a provider. */
const routes: readonly HttpRoute[] = [
  ...Object.values(governed),
  { path: /^messages\/count_tokens$/, methods: { POST: countMessageTokens } },
  { path: /^responses\/compact$/, methods: { POST: notEmulated } },
  { path: /^responses\/([^/]+)$/, methods: { GET: getResponse, DELETE: deleteResponse } },
  { path: /^responses\/([^/]+)\/input_items$/, methods: { GET: listInputItems } },
  { path: /^responses\/([^/]+)\/cancel$/, methods: { POST: notEmulated } },
  { path: /^key$/, methods: { GET: getKey } },
  { path: /^models$/, methods: { GET: listModels } },
  { path: /^models\/(.+)$/, methods: { GET: getModel } },
];

/** HEAD of any path outside `/v1/`: clients of the Messages API ask whether their base URL answers. */
const confirmPresence: EndpointHandler = async () => ({ status: 200, headers: {}, body: "" });

/**
 * The endpoint of a request, and the tail of its path.
 * @throws GatewayError `not_found`, or `method_not_allowed` with an `allow` header
 */
export function endpointOf(request: GatewayRequest): {
  readonly endpoint: EndpointHandler;
  readonly tail: string;
} {
  const path = pathAfterV1(request.url);
  if (path === null && request.method === "HEAD") return { endpoint: confirmPresence, tail: "" };
  const [route, match] = find(path ?? "");
  if (!route) throw new GatewayError("not_found", "Not found.");
  const endpoint = Object.hasOwn(route.methods, request.method)
    ? route.methods[request.method]
    : undefined;
  if (!endpoint) {
    throw new GatewayError("method_not_allowed", "This path doesn't allow this method.", {
      headers: { allow: Object.keys(route.methods).join(", ") },
    });
  }
  return { endpoint, tail: match?.[1] ?? "" };
}

/** Whether a path belongs to the Messages API, even if no route has it. */
export function isMessagesPath(url: string): boolean {
  return /^messages(?:\/|$)/.test(pathAfterV1(url) ?? "");
}

/** The tail of a request's path for an endpoint that the host has chosen; empty for none. */
export function tailFor(endpoint: EndpointHandler, request: GatewayRequest): string {
  const path = pathAfterV1(request.url) ?? "";
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
