import type { Caller, Owner } from "../domain/caller.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Answer } from "../http/answer.ts";
import type { GatewayRequest } from "../http/gateway-request.ts";
import { readBody } from "../http/read-json.ts";
import type { Authenticator } from "../identity/authenticate.ts";
import { durable, evidenceUnavailable } from "../pipeline/durable.ts";
import { execute } from "../pipeline/execute.ts";
import type { GovernedAnswer, GovernedCall } from "../pipeline/governed-call.ts";
import type { Line } from "../pipeline/line.ts";
import { KeyChanged } from "../pipeline/open-step.ts";
import type { Identify } from "./identify.ts";
import {
  type ConversationReader,
  type Conversations,
  type ReadConversation,
  readConversation,
} from "./read-conversation.ts";

/** What all requests of an entrance share. */
export interface EntranceContext {
  readonly line: Line;
  readonly authenticator: Authenticator;
  readonly identify: Identify;
  readonly conversations: Conversations;
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
interface Protocol<Item, Call> extends ConversationReader<Item, Call> {
  readonly callOf: (caller: Caller, read: ReadConversation<Item, Call>) => GovernedCall;
  readonly present: (answer: GovernedAnswer, call: Call) => Answer | Promise<Answer>;
}

/** How often a request is run again because its key changes while it runs. */
const mostRuns = 5;

/**
 * Runs a governed request for its caller. Opening a Step re-reads the key, and where that was changed, the request runs
 * again for the caller as it is then. A request that fails before is answered only after a fresh read as well, so that a
 * revoked key is refused at once.
 */
export async function answerGoverned<Item, Call>(
  { line, authenticator, identify, report }: EndpointContext,
  request: GatewayRequest,
  protocol: Protocol<Item, Call>,
): Promise<Answer> {
  const identified = identify(request);
  const credential = identified instanceof Promise ? await identified : identified;
  const found = authenticator.authenticate(credential);
  let caller = found instanceof Promise ? await durable(found) : found;
  report.caller = caller;
  let read: ReadConversation<Item, Call> | null = null;
  for (let runs = 1; ; runs++) {
    try {
      if (read === null) {
        const bytes = await readBody(request, line.limits);
        const reading = readConversation(bytes, caller, line.limits, protocol);
        read = reading instanceof Promise ? await reading : reading;
      }
      const answer = await execute(line, protocol.callOf(caller, read));
      const presented = protocol.present(answer, read.call);
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
