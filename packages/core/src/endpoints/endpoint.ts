import type { Caller, Owner } from "../domain/caller.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Answer } from "../http/answer.ts";
import type { GatewayRequest } from "../http/gateway-request.ts";
import { parseBody, readBody } from "../http/read-json.ts";
import type { Authenticator } from "../identity/authenticate.ts";
import { durable, evidenceUnavailable } from "../pipeline/durable.ts";
import { execute } from "../pipeline/execute.ts";
import type { GovernedAnswer, GovernedCall } from "../pipeline/governed-call.ts";
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

/** Answers one route, with headers of its own. `tail` is what the path has beyond the route's fixed part. */
export type Endpoint = (
  context: EndpointContext,
  request: GatewayRequest,
  tail: string,
) => Promise<Answer>;

/** How one protocol calls models: the way of its requests into the line, and of its answers out of it. */
interface Protocol<Call> {
  /** Reads a body, once. */
  readonly read: (body: object) => Call;
  readonly callOf: (caller: Caller, call: Call) => GovernedCall;
  readonly present: (answer: GovernedAnswer, call: Call) => Answer | Promise<Answer>;
}

/** How often a request is run again because its key changes while it runs. */
const mostRuns = 5;

/**
 * Runs a governed request for its caller. Opening a Step re-reads the key, and where that was changed, the request runs
 * again for the caller as it is then. A request that fails before is answered only after a fresh read as well, so that a
 * revoked key is refused at once.
 */
export async function answerGoverned<Call>(
  { line, authenticator, identify, report }: EndpointContext,
  request: GatewayRequest,
  { read, callOf, present }: Protocol<Call>,
): Promise<Answer> {
  const identified = identify(request);
  const credential = identified instanceof Promise ? await identified : identified;
  const found = authenticator.authenticate(credential);
  let caller = found instanceof Promise ? await durable(found) : found;
  report.caller = caller;
  let call: Call | null = null;
  for (let runs = 1; ; runs++) {
    try {
      if (call === null) {
        const body = parseBody(await readBody(request, line.limits), line.limits);
        call = read(body instanceof Promise ? await body : body);
      }
      const presented = present(await execute(line, callOf(caller, call)), call);
      return presented instanceof Promise ? await presented : presented;
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

/** A new object for each answer, which takes further headers. */
export function jsonHeaders(): Record<string, string> {
  return { "content-type": "application/json" };
}
