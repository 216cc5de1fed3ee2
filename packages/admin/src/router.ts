import { GatewayError } from "@tollgate/core";
import { pathAfter } from "@tollgate/core/administration";
import type { Route } from "./operation.ts";

/** A route that a request matched, with the parameters of its path. */
export interface MatchedRoute {
  /** The name of the operation: `keys.create`. */
  readonly name: string;
  readonly route: Route;
  readonly pathParameters: ReadonlyMap<string, string>;
}

/**
 * Returns a function that finds the operation of a request by the part of its path after the last `/admin/v1/`. Each segment
 * is decoded once.
 * @throws GatewayError `not_found` or `method_not_allowed`
 */
export function createRouter(
  operations: Readonly<Record<string, Route>>,
): (method: string, url: string) => MatchedRoute {
  type Methods = Map<string, Pick<MatchedRoute, "name" | "route">>;
  const patterns = new Map<string, Methods>();
  for (const [name, route] of Object.entries(operations)) {
    const methods: Methods = patterns.get(route.path) ?? new Map();
    patterns.set(route.path, methods.set(route.method, { name, route }));
  }
  // A fixed segment comes before a parameter in the same place.
  const byPrecedence = [...patterns.keys()]
    .sort((a, b) => parametersIn(a) - parametersIn(b))
    .map((pattern) => [pattern.slice(1).split("/"), patterns.get(pattern)] as const);

  return (method, url) => {
    const segments = segmentsOf(url);
    for (const [pattern, methods] of byPrecedence) {
      const pathParameters = match(pattern, segments);
      if (pathParameters === null || methods === undefined) continue;
      const named = methods.get(method);
      if (named !== undefined) return { ...named, pathParameters };
      const allow = [...methods.keys()].join(", ");
      throw new GatewayError("method_not_allowed", `This path supports only ${allow}.`, {
        headers: { allow },
      });
    }
    throw unknownPath();
  };
}

function parametersIn(pattern: string): number {
  return pattern.split("{").length - 1;
}

function segmentsOf(url: string): readonly string[] {
  const path = pathAfter("/admin/v1/", url);
  if (path === null) throw unknownPath();
  try {
    return path.split("/").map(decodeURIComponent);
  } catch {
    throw unknownPath();
  }
}

function match(
  pattern: readonly string[],
  segments: readonly string[],
): ReadonlyMap<string, string> | null {
  if (pattern.length !== segments.length) return null;
  const parameters = new Map<string, string>();
  for (const [at, part] of pattern.entries()) {
    const segment = segments[at] ?? "";
    if (part.startsWith("{")) parameters.set(part.slice(1, -1), segment);
    else if (part !== segment) return null;
  }
  return parameters;
}

function unknownPath(): GatewayError {
  return new GatewayError("not_found", "The admin API has no such path.");
}
