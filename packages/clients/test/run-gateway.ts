import { afterAll, beforeAll, expect } from "vitest";
import type { ServedGateway, StartGateway } from "./served-gateway.ts";
import { startUpstream, type Upstream } from "./upstream.ts";

/** A gateway and its upstream, while the tests of a `describe` run. */
export interface RunningGateway {
  readonly gateway: ServedGateway;
  readonly upstream: Upstream;
}

const maxStartMs = 40_000;

/** Starts both before the tests of the current `describe`, and stops them afterwards. */
export function runGateway(start: StartGateway): RunningGateway {
  let upstream: Upstream | undefined;
  let gateway: ServedGateway | undefined;
  beforeAll(async () => {
    upstream = await startUpstream();
    gateway = await start(upstream.url);
  }, maxStartMs);
  afterAll(async () => {
    await gateway?.stop();
    await upstream?.stop();
  });
  return {
    get gateway() {
      return gateway ?? expect.unreachable("the gateway did not start");
    },
    get upstream() {
      return upstream ?? expect.unreachable("the upstream did not start");
    },
  };
}
