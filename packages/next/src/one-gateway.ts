import type { Gateway } from "@tollgate/core";

/**
 * Keeps one gateway per process, however often Next loads the module that makes it: once per bundle, and again after
 * each edit under `next dev`, where a new gateway each time would leave stores, timers and database connections open.
 * Calls `create` the first time and gives what it made to every later call of the same `name`, under
 * `Symbol.for("tollgate.gateway.<name>")` of `globalThis`. What `create` throws is thrown, and the next call tries again.
 *
 * A gateway that is kept does not see edits of its own options: restart `next dev` after those. `name` tells gateways
 * of one process apart; default `"default"`.
 */
export function oneGateway<G extends Gateway>(create: () => G, name = "default"): G {
  const key = Symbol.for(`tollgate.gateway.${name}`);
  const gateways: Record<symbol, G | undefined> = globalThis;
  const gateway = gateways[key] ?? create();
  gateways[key] = gateway;
  return gateway;
}
