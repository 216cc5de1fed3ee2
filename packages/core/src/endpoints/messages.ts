import { type Completion, toolCallsOf } from "../domain/completion.ts";
import type { AssistantMessage, Message } from "../domain/message.ts";
import { tooOften } from "../errors/gateway-error.ts";
import type { GatewayRequest, RequestHeaders } from "../http/gateway-request.ts";
import type { GatewayResponse } from "../http/gateway-response.ts";
import { parseBody, readBody } from "../http/read-body.ts";
import { countTokens } from "../pipeline/count-tokens.ts";
import type {
  GovernedAnswer,
  GovernedCall,
  KnownBeginning,
  PreparedRequest,
} from "../pipeline/governed-call.ts";
import type { CachedConversation } from "../sessions/conversation-cache.ts";
import { createMessageEventWriter, messagesPing } from "../wire/messages/events.ts";
import { type MessageHead, messageBody } from "../wire/messages/message-object.ts";
import {
  betasIn,
  instructionsOf,
  type MessagesCall,
  parseMessages,
} from "../wire/messages/parse.ts";
import type { KnownItems } from "../wire/read.ts";
import {
  answerGoverned,
  type ClaimedRequest,
  commonOf,
  freshCaller,
  jsonHeaders,
  placeOf,
  type RequestScope,
} from "./endpoint.ts";
import { presentBody, presentStream, type StreamWriter } from "./present-answer.ts";

type Group = readonly Message[];

/** POST /v1/messages: the Messages API over the same line (decision 0038). */
export function createMessage(
  scope: RequestScope,
  request: GatewayRequest,
): Promise<GatewayResponse> {
  const { context } = scope;
  return answerGoverned(scope, request, {
    conversations: scope.conversations.messages,
    read: (body, known) => parseMessages(body, context.limits, known ? knownItems(known) : {}),
    callOf: (caller, read, claim) => callOf(scope, request, { caller, read, claim }),
    present(answer, call, ticket) {
      const head = headOf(answer, call.model);
      return call.stream
        ? presentStream(scope, answer, eventWriter(head, answer, scope))
        : presentBody(context, answer, ticket, ({ completion, usage, finishReason }) =>
            messageBody(head, completion, usage, finishReason),
          );
    },
  });
}

/** POST /v1/messages/count_tokens: the input tokens of a request, by its provider or estimated. */
export async function countMessageTokens(
  scope: RequestScope,
  request: GatewayRequest,
): Promise<GatewayResponse> {
  const { context } = scope;
  const { limits, headerNames } = context;
  const caller = await freshCaller(scope, request);
  const wait = context.counts.take(JSON.stringify([caller.organizationId, caller.keyId]));
  if (wait !== null)
    throw tooOften("This API key counts tokens too often. Send fewer requests.", wait);
  const ticket = context.admission.ticketFor(caller.keyId);
  try {
    const body = await parseBody(await readBody(request, context, ticket), limits);
    const call = parseMessages(
      { ...body, max_tokens: Reflect.get(body, "max_tokens") ?? 1 },
      limits,
    );
    const read = { call, known: null, remember: null };
    const { tokens, from, dataClass, decisionId } = await countTokens(
      context,
      callOf(scope, request, { caller, read, claim: null }),
      ticket,
    );
    const headers = {
      ...jsonHeaders(),
      [headerNames.sent.dataSensitivity]: dataClass,
      [headerNames.sent.tokenCount]: from,
      ...(decisionId === null ? {} : { [headerNames.sent.policyDecisionId]: decisionId }),
    };
    return { status: 200, headers, body: JSON.stringify({ input_tokens: tokens }) };
  } finally {
    ticket.release();
  }
}

function callOf(
  scope: RequestScope,
  request: GatewayRequest,
  claimed: ClaimedRequest<Group, MessagesCall>,
): GovernedCall {
  const { call, known, remember } = claimed.read;
  const { headers } = request;
  return {
    ...commonOf(scope, request, claimed),
    endpoint: "messages",
    repeatsAnswer: !call.stream,
    prepare: () => {
      const { groups: items, droppedFromMessages: droppedFields, system } = call;
      const messages = items.flat();
      return {
        request: requestOf(call, messages, headers),
        transcript: messages,
        instructions: system && instructionsOf(system),
        referredClass: null,
        previousSessionId: null,
        storedMessages: 0,
        known: known && knownTo(known, call),
        remember: remember && ((found) => remember({ items, messages, droppedFields, ...found })),
        conclude,
      };
    },
  };
}

/** The model reads the instructions first, but they aren't part of the conversation. */
export function requestOf(
  { system, options }: MessagesCall,
  messages: readonly Message[],
  headers: RequestHeaders,
): PreparedRequest["request"] {
  const betas = betasIn(headers.get("anthropic-beta"));
  return {
    ...options,
    ...(betas.length === 0 ? {} : { anthropic: { ...options.anthropic, betas } }),
    messages: system === null ? messages : [system, ...messages],
  };
}

function knownItems({ items, droppedFields }: CachedConversation<Group>): KnownItems {
  return { groups: items, droppedFields };
}

/** The messages sent began with the instructions of their request, so they are known only if those are the same. */
function knownTo(
  { chain, sent, messages }: CachedConversation<Group>,
  { system }: MessagesCall,
): KnownBeginning {
  const isLed = sent?.messages.length === messages.length + 1;
  const before = isLed ? (sent?.messages[0]?.content ?? null) : null;
  const isSame = JSON.stringify(before) === JSON.stringify(system?.content ?? null);
  return { chain, sent: isSame ? sent : null };
}

const conclude: PreparedRequest["conclude"] = (_answer, { completion }, withState) => ({
  reply: withState([replyOf(completion)]),
  response: null,
});

/** The message that a client sends back as history: one text for each run of text. */
function replyOf(completion: Completion): AssistantMessage {
  const texts = completion.parts.flatMap((part) =>
    part.type === "text" || part.type === "refusal" ? part.text : [],
  );
  const [only = null, ...others] = texts;
  const toolCalls = toolCallsOf(completion);
  return {
    role: "assistant",
    content: others.length === 0 ? only : texts.map((text) => ({ type: "text", text })),
    ...(toolCalls.length === 0 ? {} : { tool_calls: toolCalls }),
  };
}

function headOf(answer: GovernedAnswer, model: string): MessageHead {
  return { id: `msg_${answer.stepId.replaceAll("-", "")}`, model, ...placeOf(answer) };
}

function eventWriter(
  head: MessageHead,
  { inputSoFar }: GovernedAnswer,
  { report: { requestId } }: RequestScope,
): StreamWriter {
  const { write, finish, fail } = createMessageEventWriter({ head, requestId, inputSoFar });
  return {
    ping: messagesPing,
    write,
    finish: ({ completion, usage, finishReason }) => finish(completion, usage, finishReason),
    fail,
  };
}
