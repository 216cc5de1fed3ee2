import type { Caller, Owner } from "../domain/caller.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Answer } from "../http/answer.ts";
import type { GatewayRequest } from "../http/gateway-request.ts";
import type { Authenticator } from "../identity/authenticate.ts";
import { durable, evidenceUnavailable } from "../pipeline/durable.ts";
import type { Line } from "../pipeline/line.ts";
import { KeyChanged } from "../pipeline/open-step.ts";
import type { Identify } from "./identify.ts";

/** What all requests of an entrance share. */
export interface EntranceContext {
  readonly line: Line;
  readonly authenticator: Authenticator;
  readonly identify: Identify;
}

/** What every endpoint is given. */
export interface EndpointContext extends EntranceContext {
  readonly report: RequestReport;
}

/** What is known of one request, for the events of its failure. */
export interface RequestReport {
  /** Null until it is authenticated. */
  caller: Owner | null;
  /** Reports the error that it is answered with. */
  failed(error: GatewayError): void;
}

/** Answers one route. `tail` is what the path has beyond the route's fixed part. */
export type Endpoint = (
  context: EndpointContext,
  request: GatewayRequest,
  tail: string,
) => Promise<Answer>;

/** How often a request is run anew because its key changes while it runs. */
const mostRuns = 5;

/**
 * Runs a governed request for its caller. Opening a Step re-reads the key, and where that was changed, the request runs
 * anew for the caller as it is then. A request that fails before is answered only after a fresh read as well, so that a
 * revoked key is refused at once.
 */
export async function asCaller<Call, Result>(
  { authenticator, identify, report }: EndpointContext,
  request: GatewayRequest,
  {
    read,
    run,
  }: {
    /** Reads the request once: its body does not come again. */
    readonly read: () => Promise<Call>;
    readonly run: (caller: Caller, call: Call) => Promise<Result>;
  },
): Promise<Result> {
  const credential = await identify(request);
  let caller = await durable(authenticator.authenticate(credential));
  report.caller = caller;
  let reading: Promise<Call> | null = null;
  for (let runs = 1; ; runs++) {
    try {
      reading ??= read();
      return await run(caller, await reading);
    } catch (error) {
      // A store that cannot write this request's record would only be waited for once more.
      if (error instanceof GatewayError && error.code === "evidence_unavailable") throw error;
      caller = await durable(authenticator.authenticateFresh(credential));
      if (!(error instanceof KeyChanged)) throw error;
      if (runs === mostRuns) throw evidenceUnavailable(error);
    }
  }
}

/**
 * The caller of a request that opens no Step, from a fresh read: a revoked key is refused at once.
 * @throws GatewayError `evidence_unavailable` when the store cannot say
 */
export async function freshCaller(
  { authenticator, identify, report }: EndpointContext,
  request: GatewayRequest,
): Promise<Caller> {
  const caller = await durable(authenticator.authenticateFresh(await identify(request)));
  report.caller = caller;
  return caller;
}

export const jsonHeaders = { "content-type": "application/json" } as const;
