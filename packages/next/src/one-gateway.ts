import type { Gateway } from "@tollgate/core";

/**
 * Keeps one gateway per process. Next loads a module once per bundle, and again after each edit under `next dev`. A new
 * gateway each time would leave stores, timers and database connections open.
 * The first call runs `create`. Later calls with the same `name` return the same gateway, which is stored under
 * `Symbol.for("tollgate.gateway.<name>")` of `globalThis`. Errors of `create` are rethrown, and the next call tries again.
 *
 * Edits of the gateway's options have no effect until you restart `next dev`. `name` distinguishes several gateways of
 * one process. Default `"default"`.
 */
export function oneGateway<G extends Gateway>(create: () => G, name = "default"): G {
  const key = Symbol.for(`tollgate.gateway.${name}`);
  const gateways: Record<symbol, G | undefined> = globalThis;
  const gateway = gateways[key] ?? create();
  gateways[key] = gateway;
  return gateway;
}
