import type { ClaimIntent } from "../contracts/step-verbs.ts";
import type { Caller, Owner } from "../domain/caller.ts";
import type { Limits } from "../domain/limits.ts";
import type { Message } from "../domain/message.ts";
import { conversationEndpoints } from "../domain/step.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { GatewayRequest } from "../http/gateway-request.ts";
import type { GatewayResponse } from "../http/gateway-response.ts";
import { parseBody, readBody } from "../http/read-body.ts";
import { claimFor, isSdkRetry, requireIdempotencyKey } from "../idempotency/claim.ts";
import type { Authenticator } from "../identity/authenticate.ts";
import { unlessAborted } from "../kernel/bounded-wait.ts";
import type { Ticket } from "../limits/admission.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import type {
  AnswerHead,
  GovernedAnswer,
  GovernedCall,
  ReplayedAnswer,
} from "../pipeline/governed-call.ts";
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
import { textAnswer } from "./text-answer.ts";

/** The dependencies that all requests share. */
export interface HandlerDependencies {
  readonly context: GatewayContext;
  readonly authenticator: Authenticator;
  readonly identify: Identify;
  readonly conversations: Conversations;
}

/** The dependencies of one request. */
export interface RequestScope extends HandlerDependencies {
  readonly report: RequestReport;
}

/** The facts that the events of a request report. */
export interface RequestReport {
  /** The answer's `x-request-id`. */
  readonly requestId: string;
  /** Null until the request is authenticated. */
  caller: Owner | null;
  /** Reports the error that the client gets. */
  failed(error: GatewayError): void;
}

/** Answers one route. `tail` is the variable part of its path. The headers must be a new object. */
export type EndpointHandler = (
  scope: RequestScope,
  request: GatewayRequest,
  tail: string,
) => Promise<GatewayResponse>;

/** One protocol: how its requests become governed calls, and how their answers are presented. */
interface Protocol<Item, Call> extends ConversationReader<Item, Call> {
  /** The bytes that an answer takes beyond its request, for answers that can be much larger. Default: 0. */
  readonly answerBytes?: (call: Call) => number;
  readonly callOf: (
    caller: Caller,
    read: ReadConversation<Item, Call>,
    claim: ClaimIntent | null,
  ) => GovernedCall;
  /** The ticket is for an answer that is written after its Step has ended. */
  readonly present: (
    answer: GovernedAnswer,
    call: Call,
    ticket: Ticket,
  ) => GatewayResponse | Promise<GatewayResponse>;
}

/** The store can't write or has enough to do, so these failures don't ask it once more. */
const spared: ReadonlySet<string> = new Set(["evidence_unavailable", "overloaded"]);

/** How often a request runs because its key keeps changing. */
const maxRuns = 5;

/**
 * Answers a governed call. Opening a Step reads the key again. If the key has changed, the request runs again with the
 * caller as it is now. After any other failure, the key is read again before the answer: a revoked key must be rejected at
 * once.
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
  const ticket = context.admission.ticketFor(caller.keyId);
  const key = request.headers.get("idempotency-key");
  let claim: ClaimIntent | null = null;
  let bytes: Buffer | null = null;
  for (let runs = 1; ; runs++) {
    try {
      if (bytes === null) {
        if (key !== null) requireIdempotencyKey(key);
        bytes = await readBody(request, context, ticket);
        const turn = ticket.turn("openings");
        if (turn !== null) await unlessAborted(request.signal, turn);
        if (key !== null) claim = await claimFor(key, partsOf(context, request, caller, bytes));
      }
      // Remembered conversations depend on the key, which may have changed.
      const reading = readConversation(bytes, caller, protocol, context.limits);
      const read = reading instanceof Promise ? await reading : reading;
      if (runs === 1) ticket.grow(protocol.answerBytes?.(read.call) ?? 0);
      const answer = await execute(context, protocol.callOf(caller, read, claim), ticket);
      // The Step is open, so the request doesn't start over. Its answer may take minutes.
      bytes = null;
      if ("replayed" in answer) {
        const repeated = replay({ context, report }, caller, { answer, ticket });
        ticket.release();
        return repeated;
      }
      const presented = protocol.present(answer, read.call, ticket);
      return presented instanceof Promise ? await presented : presented;
    } catch (error) {
      const isLast = !(error instanceof KeyChanged) || runs === maxRuns;
      if (isLast) ticket.release();
      if (error instanceof GatewayError && spared.has(error.code)) throw error;
      try {
        caller = await orUnavailable(authenticator.authenticateFresh(credential));
      } catch (refused) {
        ticket.release();
        throw refused;
      }
      if (!(error instanceof KeyChanged)) throw error;
      if (isLast) throw evidenceUnavailable(error);
    }
  }
}

/** The parts of a request that its repeat must equal. */
function partsOf(
  { headerNames }: GatewayContext,
  { headers }: GatewayRequest,
  { source }: Caller,
  body: Buffer,
) {
  return { body, source, dataClass: headers.get(headerNames.sent.dataSensitivity) };
}

/** Answers a request that repeats another. It opens no Step, so only observers learn of it. */
function replay(
  { context, report }: Pick<RequestScope, "context" | "report">,
  { organizationId, keyId }: Caller,
  { answer, ticket }: { readonly answer: ReplayedAnswer; readonly ticket: Ticket },
): GatewayResponse {
  const { stepId, decisionId, replayed } = answer;
  const { requestId } = report;
  const at = context.clock.now();
  const facts = { at, requestId, organizationId, keyId, stepId, decisionId };
  context.notify({ type: "request.replayed", ...facts });
  const { buffer, byteOffset, byteLength } = replayed.body;
  const headers = { ...replayed.headers, "idempotency-replayed": "true" };
  return textAnswer(headers, Buffer.from(buffer, byteOffset, byteLength).toString(), ticket);
}

/**
 * The caller of a request that opens no Step. Always reads the key: a revoked key must be rejected at once.
 * @throws GatewayError `evidence_unavailable` if the store can't read it
 */
export async function freshCaller(
  { authenticator, identify, report }: RequestScope,
  request: GatewayRequest,
): Promise<Caller> {
  const caller = await orUnavailable(authenticator.authenticateFresh(await identify(request)));
  report.caller = caller;
  return caller;
}

/**
 * Answers a request without a body that opens no Step. It takes room until its answer is ready, or, if that is long, until
 * it is written.
 */
export async function answerCaller(
  scope: RequestScope,
  request: GatewayRequest,
  answer: (caller: Caller, ticket: Ticket) => Promise<GatewayResponse>,
): Promise<GatewayResponse> {
  const caller = await freshCaller(scope, request);
  const ticket = scope.context.admission.ticketFor(caller.keyId);
  ticket.admit(0);
  try {
    return await answer(caller, ticket);
  } finally {
    ticket.release();
  }
}

/** The Session and the Turn of an answer in a conversation. */
export function placeOf({ sessionId, turnId }: AnswerHead): {
  readonly sessionId: string;
  readonly turnId: string;
} {
  if (sessionId === null || turnId === null) throw new TypeError("the answer has no Session");
  return { sessionId, turnId };
}

/** A new object for each answer, because more headers are added later. */
export function jsonHeaders(): Record<string, string> {
  return { "content-type": "application/json" };
}

type Conversations = ReturnType<typeof createConversations>;

/** The remembered conversations of each endpoint, found by the list in its bodies that grows. */
export function createConversations({ conversationCacheBytes }: Limits) {
  const bytes = conversationCacheBytes / conversationEndpoints.length;
  return {
    chat_completions: createConversationCache<Message>("messages", bytes),
    responses: createConversationCache<InputItem>("input", bytes),
    messages: createConversationCache<readonly Message[]>("messages", bytes),
  } satisfies Readonly<Record<(typeof conversationEndpoints)[number], ConversationCache<unknown>>>;
}

/** A call as read from its body. */
export interface ReadConversation<Item, Call> {
  readonly call: Call;
  /** The remembered beginning of its conversation; null for none. */
  readonly known: CachedConversation<Item> | null;
  /** Remembers the conversation for its next request; null if that isn't worth it. */
  readonly remember: ((conversation: Omit<CachedConversation<Item>, "values">) => void) | null;
}

/** A read request of a caller, and the claim on its idempotency key; null without one. */
export interface ClaimedRequest<Item, Call> {
  readonly caller: Caller;
  readonly read: ReadConversation<Item, Call>;
  readonly claim: ClaimIntent | null;
}

/** The members of a read body that every POST has. */
type CommonFields = Pick<
  GovernedCall,
  "stream" | "model" | "sessionId" | "turnId" | "droppedFields"
>;

/** The members of a governed call that every endpoint reads in the same way. */
export function commonOf<Item>(
  { context: { headerNames }, report }: RequestScope,
  { headers, signal }: GatewayRequest,
  { caller, read: { call }, claim }: ClaimedRequest<Item, CommonFields>,
): Omit<GovernedCall, "endpoint" | "repeatsAnswer" | "prepare"> {
  return {
    requestId: report.requestId,
    caller,
    stream: call.stream,
    model: call.model,
    dataClass: headers.get(headerNames.sent.dataSensitivity),
    sessionId: call.sessionId,
    turnId: call.turnId,
    claim,
    isRetry: claim === null && isSdkRetry(headers),
    droppedFields: call.droppedFields,
    signal,
  };
}

/** How an endpoint reads its bodies. */
interface ConversationReader<Item, Call> {
  /** Null if its bodies have no conversation. */
  readonly conversations: ConversationCache<Item> | null;
  /** The limits on its bodies. Default: those of the gateway. */
  readonly limits?: Limits;
  /** Reads a body. If the conversation's beginning is known, the body lacks it. */
  readonly read: (body: object, known: CachedConversation<Item> | null) => Call;
}

/**
 * Reads the body of a call. If an earlier body of the same key began with the same conversation, reads only the rest. The
 * result is the same: if the rest can't be read alone, reads the whole body, which also gives errors their right paths.
 */
function readConversation<Item, Call>(
  bytes: Buffer,
  { organizationId, keyId, source, leadingSystem }: Caller,
  { conversations, limits: own, read }: ConversationReader<Item, Call>,
  general: Limits,
): ReadConversation<Item, Call> | Promise<ReadConversation<Item, Call>> {
  // A chain also depends on where the key's leading instructions go.
  const owner = `${organizationId}\u0000${keyId}\u0000${source}\u0000${leadingSystem}`;
  const limits = own ?? general;
  const list =
    conversations === null || bytes.length > limits.bodyBytes
      ? null
      : conversations.listOf(owner, bytes);
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
    // An error must name its place in the whole body.
    readWhole,
  );
}

async function readRest<Item, Call>(
  rest: Buffer,
  limits: Limits,
  known: CachedConversation<Item>,
  read: ConversationReader<Item, Call>["read"],
): Promise<Call> {
  // The comma between both parts counts as a value.
  const values = limits.values - known.values - 1;
  return read(await parseBody(rest, { ...limits, values }), known);
}
