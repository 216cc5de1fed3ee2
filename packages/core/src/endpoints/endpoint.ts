import type { Caller, Owner } from "../domain/caller.ts";
import type { Limits } from "../domain/limits.ts";
import type { Message } from "../domain/message.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { GatewayRequest } from "../http/gateway-request.ts";
import type { GatewayResponse } from "../http/gateway-response.ts";
import { parseBody, readBody } from "../http/read-body.ts";
import type { Authenticator } from "../identity/authenticate.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import type { GovernedAnswer, GovernedCall } from "../pipeline/governed-call.ts";
import { execute } from "../pipeline/line.ts";
import { KeyChanged } from "../pipeline/open-step.ts";
import { evidenceUnavailable, orUnavailable } from "../pipeline/store-calls.ts";
import {
  type CachedConversation,
  type ConversationCache,
  createConversationCache,
} from "../sessions/conversation-cache.ts";
import type { InputItem } from "../wire/responses/items.ts";
import type { Identify } from "./identify.ts";

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

/** The conversations that each endpoint knows. */
interface Conversations {
  readonly messages: ConversationCache<Message>;
  readonly input: ConversationCache<InputItem>;
}

export function createConversations({ conversationCacheBytes }: Limits): Conversations {
  return {
    messages: createConversationCache("messages", conversationCacheBytes / 2),
    input: createConversationCache("input", conversationCacheBytes / 2),
  };
}

/** A call as it was read. */
export interface ReadConversation<Item, Call> {
  readonly call: Call;
  /** What an earlier body said of its conversation; null for nothing. */
  readonly known: CachedConversation<Item> | null;
  /** Remembers it for the next one; null where that isn't worth it. */
  readonly remember: ((conversation: Omit<CachedConversation<Item>, "values">) => void) | null;
}

/** How the bodies of one endpoint are read. */
interface ConversationReader<Item, Call> {
  readonly conversations: ConversationCache<Item>;
  /** Reads a body that lacks what is known of its conversation. */
  readonly read: (body: object, known: CachedConversation<Item> | null) => Call;
}

/**
 * Reads the body of a call. Where an earlier body of the same key began with the same conversation, only what follows is
 * read. That gives the same call: a body that can't be read so is read whole, and refused for what is wrong with all of it.
 */
function readConversation<Item, Call>(
  bytes: Buffer,
  { organizationId, keyId, source }: Caller,
  limits: Limits,
  { conversations, read }: ConversationReader<Item, Call>,
): ReadConversation<Item, Call> | Promise<ReadConversation<Item, Call>> {
  const whose = `${organizationId}\u0000${keyId}\u0000${source}`;
  const list = bytes.length > limits.bodyBytes ? null : conversations.listOf(whose, bytes);
  const remember = list?.remember ?? null;
  const whole = (body: object): ReadConversation<Item, Call> => ({
    call: read(body, null),
    known: null,
    remember,
  });
  const readWhole = () => {
    const body = parseBody(bytes, limits);
    return body instanceof Promise ? body.then(whole) : whole(body);
  };
  if (!list?.continued) return readWhole();
  const { known, rest } = list.continued;
  return readRest(rest, limits, known, read).then(
    (call) => ({ call, known, remember }),
    // What is wrong with it has its place in the whole.
    readWhole,
  );
}

async function readRest<Item, Call>(
  rest: Buffer,
  limits: Limits,
  known: CachedConversation<Item>,
  read: ConversationReader<Item, Call>["read"],
): Promise<Call> {
  // The comma between both parts is one value more.
  const values = limits.values - known.values - 1;
  return read(await parseBody(rest, { ...limits, values }), known);
}
