import type { ResponseDraft } from "../contracts/step-verbs.ts";
import type { Caller } from "../domain/caller.ts";
import type { Completion } from "../domain/completion.ts";
import type { Message } from "../domain/message.ts";
import type { GatewayRequest } from "../http/gateway-request.ts";
import type { GatewayResponse } from "../http/gateway-response.ts";
import { isLarge, yieldToEventLoop } from "../kernel/event-loop.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import type {
  AnswerHead,
  GovernedCall,
  KnownBeginning,
  PreparedRequest,
  SettledAnswer,
} from "../pipeline/governed-call.ts";
import type { CachedConversation } from "../sessions/conversation-cache.ts";
import type { KnownItems } from "../wire/read.ts";
import { createEventWriter } from "../wire/responses/events.ts";
import { storedInput } from "../wire/responses/input-items.ts";
import { responseId } from "../wire/responses/item-ids.ts";
import { joinsAnswer } from "../wire/responses/item-state.ts";
import type { InputItem } from "../wire/responses/items.ts";
import { outputItems } from "../wire/responses/output-items.ts";
import { parseResponse, type ResponseCall } from "../wire/responses/parse.ts";
import { type ResponseHead, responseBody } from "../wire/responses/response-object.ts";
import { toMessages } from "../wire/responses/to-messages.ts";
import {
  answerGoverned,
  type ClaimedRequest,
  commonOf,
  placeOf,
  type ReadConversation,
  type RequestScope,
} from "./endpoint.ts";
import { presentBody, presentStream, type StreamWriter } from "./present-answer.ts";
import { type Conversation, findConversation } from "./response-conversation.ts";

/** POST /v1/responses (section 4.2): translated into a governed call, and its answer translated back. */
export function createResponse(
  scope: RequestScope,
  request: GatewayRequest,
): Promise<GatewayResponse> {
  const { context } = scope;
  return answerGoverned(scope, request, {
    conversations: scope.conversations.responses,
    read: (body, known) =>
      parseResponse(body, context.limits, {
        toolOutputs: context.toolOutputs,
        known: known ? knownItems(known) : {},
      }),
    callOf: (caller, read, claim) => callOf(scope, request, { caller, read, claim }),
    present(answer, call, ticket) {
      const head = headOf(answer, call);
      return call.stream
        ? presentStream(scope, answer, eventWriter(head, call))
        : presentBody(context, answer, ticket, (settled) => bodyOf(head, call, settled));
    },
  });
}

function callOf(
  scope: RequestScope,
  request: GatewayRequest,
  claimed: ClaimedRequest<InputItem, ResponseCall>,
): GovernedCall {
  const { caller, read } = claimed;
  const { call, known, remember } = read;
  const { context } = scope;
  return {
    ...commonOf(scope, request, claimed),
    endpoint: "responses",
    repeatsAnswer: true,
    prepare: async (room) => {
      const reading = { context, caller, room };
      const conversation = await findConversation(reading, call, known);
      return {
        ...prepared(context, { caller, call, conversation }),
        known: known && knownTo(known, call),
        remember: remember && remembering(remember, call, conversation),
      };
    },
  };
}

interface Exchange {
  readonly caller: Caller;
  readonly call: ResponseCall;
  readonly conversation: Conversation;
}

/** The model reads instructions first, but they aren't part of the conversation. */
function prepared(
  context: GatewayContext,
  exchange: Exchange,
): Omit<PreparedRequest, "known" | "remember"> {
  const { call, conversation } = exchange;
  const transcript = [...conversation.history, ...conversation.messages];
  const { instructions } = call;
  const messages =
    instructions === null
      ? transcript
      : [{ role: "system" as const, content: instructions }, ...transcript];
  return {
    request: { ...call.options, messages },
    transcript,
    instructions,
    referredClass: conversation.dataClass,
    previousSessionId: conversation.sessionId,
    storedMessages: conversation.history.length,
    conclude: async (head, answer, withState) => {
      const output = outputItems(answer.completion, responseId(head.stepId));
      const reply = withState(toMessages(output.filter((item) => item.type !== "reasoning")));
      return {
        reply,
        response: call.store ? await draft(context, exchange, { head, answer, reply }) : null,
      };
    },
  };
}

function knownItems({ items, droppedFields }: CachedConversation<InputItem>): KnownItems {
  return { items, droppedFields };
}

/**
 * The known results for the request's first messages; null if it continues a response, because the response's messages come
 * first. Instructions don't belong to the conversation, but the messages sent began with them.
 */
function knownTo(
  { chain, sent, messages }: CachedConversation<InputItem>,
  { instructions, previousResponseId }: ResponseCall,
): KnownBeginning | null {
  if (previousResponseId !== null) return null;
  const [first] = sent?.messages ?? [];
  const isLed = sent?.messages.length === messages.length + 1;
  const before = isLed ? first?.content : null;
  return { chain, sent: before === instructions ? sent : null };
}

/**
 * Remembers the input if later requests would read it the same way. Referenced items may be deleted, and an answer
 * continues with the items after it, so both are excluded.
 */
function remembering(
  remember: NonNullable<ReadConversation<InputItem, ResponseCall>["remember"]>,
  { input, previousResponseId, droppedFromInput: droppedFields }: ResponseCall,
  { messages }: Conversation,
): PreparedRequest["remember"] {
  const last = input.at(-1);
  if (previousResponseId !== null || last === undefined || joinsAnswer(last)) return null;
  if (input.some(({ type }) => type === "item_reference")) return null;
  return (found) => remember({ items: input, messages, droppedFields, ...found });
}

async function draft(
  context: GatewayContext,
  { caller, call, conversation }: Exchange,
  {
    head,
    answer,
    reply,
  }: {
    readonly head: AnswerHead;
    readonly answer: SettledAnswer;
    readonly reply: readonly Message[];
  },
): Promise<ResponseDraft> {
  const id = responseId(head.stepId);
  const { organizationId, userId, keyId } = caller;
  return {
    id,
    organizationId,
    userId,
    keyId,
    stepId: head.stepId,
    sessionId: placeOf(head).sessionId,
    dataClass: head.dataClass,
    previousResponseId: call.previousResponseId,
    createdAt: head.openedAt,
    expiresAt: head.openedAt + context.retention.responses,
    body: await bytesOf(() => bodyOf(headOf(head, call), call, answer)),
    input: await bytesOf(() => JSON.stringify(storedInput(conversation.items, id))),
    messages: await bytesOf(() => JSON.stringify([...conversation.messages, ...reply])),
    inherited: await bytesOf(() => JSON.stringify(conversation.history)),
  };
}

function headOf(answer: AnswerHead, call: ResponseCall): ResponseHead {
  return {
    id: responseId(answer.stepId),
    createdAt: answer.openedAt,
    model: call.model,
    ...placeOf(answer),
    previousResponseId: call.previousResponseId,
    store: call.store,
    echo: call.echo,
    namespaces: call.namespaces,
  };
}

function bodyOf(head: ResponseHead, call: ResponseCall, settled: SettledAnswer): string {
  const { usage, finishReason, settledAt } = settled;
  return responseBody(head, shown(call, settled), usage, finishReason, settledAt);
}

/** The answer, with its sealed state if the client asked for it. */
function shown({ includesState }: ResponseCall, settled: SettledAnswer): Completion {
  const sealedState = includesState ? settled.sealedState() : null;
  return sealedState === null ? settled.completion : { ...settled.completion, sealedState };
}

function eventWriter(head: ResponseHead, call: ResponseCall): StreamWriter {
  const { write, finish, fail } = createEventWriter(head);
  return {
    write,
    finish: (settled) =>
      finish(shown(call, settled), settled.usage, settled.finishReason, settled.settledAt),
    fail,
  };
}

async function bytesOf(write: () => string): Promise<Buffer> {
  const bytes = Buffer.from(write());
  if (isLarge(bytes.length)) await yieldToEventLoop();
  return bytes;
}
