import type { Caller } from "../domain/caller.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Answer } from "../http/answer.ts";
import type { Authenticator } from "../identity/authenticate.ts";
import { durable } from "../pipeline/durable.ts";
import type { Line } from "../pipeline/line.ts";
import type { Identify } from "./identify.ts";

/** What every endpoint is given. */
export interface EndpointContext {
  readonly line: Line;
  readonly authenticator: Authenticator;
  readonly identify: Identify;
}

/** Answers one route. `tail` is what the path has beyond the route's fixed part. */
export type Endpoint = (
  context: EndpointContext,
  request: Request,
  tail: string,
) => Promise<Answer>;

/**
 * Runs a governed request for its caller. Opening a Step re-reads the key; a request that fails before it is answered
 * only after a fresh read, so that a revoked key is refused at once.
 */
export async function asCaller<Result>(
  { authenticator, identify }: EndpointContext,
  request: Request,
  run: (caller: Caller) => Promise<Result>,
): Promise<Result> {
  const credential = await identify(request);
  const caller = await durable(authenticator.authenticate(credential));
  try {
    return await run(caller);
  } catch (error) {
    // A store that cannot write this request's record would only be waited for once more.
    if (error instanceof GatewayError && error.code === "evidence_unavailable") throw error;
    await durable(authenticator.authenticateFresh(credential));
    throw error;
  }
}

/**
 * The caller of a request that opens no Step, from a fresh read: a revoked key is refused at once.
 * @throws GatewayError `evidence_unavailable` when the store cannot say
 */
export async function freshCaller(
  { authenticator, identify }: EndpointContext,
  request: Request,
): Promise<Caller> {
  return durable(authenticator.authenticateFresh(await identify(request)));
}

export const jsonHeaders = { "content-type": "application/json" } as const;
