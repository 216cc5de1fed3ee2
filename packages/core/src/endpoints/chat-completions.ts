import { replyMessage } from "../domain/completion.ts";
import type { Message } from "../domain/message.ts";
import type { GatewayRequest } from "../http/gateway-request.ts";
import type { GatewayResponse } from "../http/gateway-response.ts";
import type { GovernedAnswer, GovernedCall, PreparedRequest } from "../pipeline/governed-call.ts";
import type { CachedConversation } from "../sessions/conversation-cache.ts";
import { chatCompletionBody } from "../wire/chat-completions/body.ts";
import { ChunkWriter } from "../wire/chat-completions/chunks.ts";
import type { ChatCompletionHead } from "../wire/chat-completions/head.ts";
import { type ChatCompletionCall, parseChatCompletion } from "../wire/chat-completions/parse.ts";
import type { KnownItems } from "../wire/read.ts";
import {
  answerGoverned,
  type ClaimedRequest,
  commonOf,
  placeOf,
  type RequestScope,
} from "./endpoint.ts";
import { presentBody, presentStream, type StreamWriter } from "./present-answer.ts";

/** POST /v1/chat/completions (section 4.1). */
export function chatCompletions(
  scope: RequestScope,
  request: GatewayRequest,
): Promise<GatewayResponse> {
  const { context } = scope;
  return answerGoverned(scope, request, {
    conversations: scope.conversations.chat_completions,
    read: (body, known) =>
      parseChatCompletion(body, context.limits, known ? knownItems(known) : {}),
    callOf: (caller, read, claim) => callOf(scope, request, { caller, read, claim }),
    present(answer, call, ticket) {
      const head = headOf(answer, call.model);
      return call.stream
        ? presentStream(scope, answer, chunkWriter(head, call.includeUsage))
        : presentBody(context, answer, ticket, ({ completion, usage }) =>
            chatCompletionBody(head, completion, usage),
          );
    },
  });
}

function callOf(
  scope: RequestScope,
  request: GatewayRequest,
  claimed: ClaimedRequest<Message, ChatCompletionCall>,
): GovernedCall {
  const { call, known, remember } = claimed.read;
  const { request: asked, droppedFromMessages: droppedFields } = call;
  const { messages } = asked;
  return {
    ...commonOf(scope, request, claimed),
    endpoint: "chat_completions",
    repeatsAnswer: !call.stream,
    prepare: () => ({
      request: asked,
      transcript: messages,
      instructions: null,
      referredClass: null,
      previousSessionId: null,
      storedMessages: 0,
      known,
      remember:
        remember && ((found) => remember({ items: messages, messages, droppedFields, ...found })),
      conclude,
    }),
  };
}

const conclude: PreparedRequest["conclude"] = (_answer, { completion }, withState) => ({
  reply: withState([replyMessage(completion)]),
  response: null,
});

function knownItems({ messages, droppedFields }: CachedConversation<Message>): KnownItems {
  return { messages, droppedFields };
}

function headOf(answer: GovernedAnswer, model: string): ChatCompletionHead {
  const { stepId, openedAt, systemFingerprint } = answer;
  return {
    id: `chatcmpl-${stepId}`,
    created: Math.floor(openedAt / 1_000),
    model,
    systemFingerprint,
    ...placeOf(answer),
  };
}

function chunkWriter(head: ChatCompletionHead, includeUsage: boolean): StreamWriter {
  const chunks = new ChunkWriter({ ...head, includeUsage });
  return {
    write: (events) => chunks.write(events),
    finish: ({ completion, finishReason, usage }) =>
      chunks.finish(finishReason, usage, completion.usage.serviceTier),
    fail: (error) => chunks.fail(error),
  };
}
