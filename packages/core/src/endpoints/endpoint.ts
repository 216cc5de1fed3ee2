import type { Caller, Owner } from "../domain/caller.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { GatewayRequest } from "../http/gateway-request.ts";
import type { GatewayResponse } from "../http/gateway-response.ts";
import { readBody } from "../http/read-json.ts";
import type { Authenticator } from "../identity/authenticate.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import { evidenceUnavailable, orUnavailable } from "../pipeline/durable.ts";
import { execute } from "../pipeline/execute.ts";
import type { GovernedAnswer, GovernedCall } from "../pipeline/governed-call.ts";
import { KeyChanged } from "../pipeline/open-step.ts";
import type { Identify } from "./identify.ts";
import {
  type ConversationReader,
  type Conversations,
  type ReadConversation,
  readConversation,
} from "./read-conversation.ts";

/** What all requests of an entrance share. */
export interface HandlerDependencies {
  readonly context: GatewayContext;
  readonly authenticator: Authenticator;
  readonly identify: Identify;
  readonly conversations: Conversations;
}

/** What every endpoint is given. */
export interface RequestScope extends HandlerDependencies {
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
export type EndpointHandler = (
  scope: RequestScope,
  request: GatewayRequest,
  tail: string,
) => Promise<GatewayResponse>;

/** How one protocol calls models: the way of its requests into the line, and of its answers out of it. */
interface Protocol<Item, Call> extends ConversationReader<Item, Call> {
  readonly callOf: (caller: Caller, read: ReadConversation<Item, Call>) => GovernedCall;
  readonly present: (
    answer: GovernedAnswer,
    call: Call,
  ) => GatewayResponse | Promise<GatewayResponse>;
}

/** How often a request is run again because its key changes while it runs. */
const maxRuns = 5;

/**
 * Runs a governed request for its caller. Opening a Step re-reads the key, and where that was changed, the request runs
 * again for the caller as it is then. A request that fails before is answered only after a fresh read as well, so that a
 * revoked key is refused at once.
 */
export async function answerGoverned<Item, Call>(
  { context, authenticator, identify, report }: RequestScope,
  request: GatewayRequest,
  protocol: Protocol<Item, Call>,
): Promise<GatewayResponse> {
  const identified = identify(request);
  const credential = identified instanceof Promise ? await identified : identified;
  const found = authenticator.authenticate(credential);
  let caller = found instanceof Promise ? await orUnavailable(found) : found;
  report.caller = caller;
  let read: ReadConversation<Item, Call> | null = null;
  for (let runs = 1; ; runs++) {
    try {
      if (read === null) {
        const bytes = await readBody(request, context.limits);
        const reading = readConversation(bytes, caller, context.limits, protocol);
        read = reading instanceof Promise ? await reading : reading;
      }
      const answer = await execute(context, protocol.callOf(caller, read));
      const presented = protocol.present(answer, read.call);
      return presented instanceof Promise ? await presented : presented;
    } catch (error) {
      // A store that cannot write this request's record would only be waited for once more.
      if (error instanceof GatewayError && error.code === "evidence_unavailable") throw error;
      caller = await orUnavailable(authenticator.authenticateFresh(credential));
      if (!(error instanceof KeyChanged)) throw error;
      if (runs === maxRuns) throw evidenceUnavailable(error);
    }
  }
}

/**
 * The caller of a request that opens no Step, from a fresh read: a revoked key is refused at once.
 * @throws GatewayError `evidence_unavailable` when the store cannot say
 */
export async function freshCaller(
  { authenticator, identify, report }: RequestScope,
  request: GatewayRequest,
): Promise<Caller> {
  const caller = await orUnavailable(authenticator.authenticateFresh(await identify(request)));
  report.caller = caller;
  return caller;
}

/** A new object for each answer, which takes further headers. */
export function jsonHeaders(): Record<string, string> {
  return { "content-type": "application/json" };
}
