import type { Caller } from "../domain/caller.ts";
import { replyMessage } from "../domain/completion.ts";
import type { Answer } from "../http/answer.ts";
import type { GatewayRequest } from "../http/gateway-request.ts";
import { readJson } from "../http/read-json.ts";
import { execute } from "../pipeline/execute.ts";
import type { GovernedAnswer } from "../pipeline/governed-call.ts";
import { chatCompletionBody } from "../wire/chat-completions/body.ts";
import { createChunkWriter } from "../wire/chat-completions/chunks.ts";
import type { ChatCompletionHead } from "../wire/chat-completions/head.ts";
import { type ChatCompletionCall, parseChatCompletion } from "../wire/chat-completions/parse.ts";
import { asCaller, type EndpointContext } from "./endpoint.ts";
import { presentBody } from "./present-body.ts";
import { presentStream, type StreamWriter } from "./present-stream.ts";

/** POST /v1/chat/completions (section 4.1). */
export function chatCompletions(
  context: EndpointContext,
  request: GatewayRequest,
): Promise<Answer> {
  const { line } = context;
  const read = async () => parseChatCompletion(await readJson(request, line.limits), line.limits);
  const run = async (caller: Caller, call: ChatCompletionCall): Promise<Answer> => {
    const { request: asked, ...parsed } = call;
    const answer = await execute(line, {
      ...parsed,
      caller,
      endpoint: "chat_completions",
      dataClass: request.headers.get(line.headerNames.dataSensitivity),
      signal: request.signal,
      prepare: async () => ({
        request: asked,
        transcript: asked.messages,
        instructions: null,
        referredClass: null,
        alsoConsider: null,
        storedMessages: 0,
        conclude: async (_answer, { completion }, withState) => ({
          reply: withState([replyMessage(completion)]),
          response: null,
        }),
      }),
    });
    const head = headOf(answer, parsed.model);
    return parsed.stream
      ? presentStream(context, answer, chunkWriter(head, parsed.includeUsage))
      : presentBody(line, answer, ({ completion, usage }) =>
          chatCompletionBody(head, completion, usage),
        );
  };
  return asCaller(context, request, { read, run });
}

function headOf(
  { stepId, openedAt, sessionId, turnId, systemFingerprint }: GovernedAnswer,
  model: string,
): ChatCompletionHead {
  return {
    id: `chatcmpl-${stepId}`,
    created: Math.floor(openedAt / 1_000),
    model,
    systemFingerprint,
    sessionId,
    turnId,
  };
}

function chunkWriter(head: ChatCompletionHead, includeUsage: boolean): StreamWriter {
  const chunks = createChunkWriter({ ...head, includeUsage });
  return {
    write: chunks.write,
    finish: ({ completion, finishReason, usage }) =>
      chunks.finish(finishReason, usage, completion.usage.serviceTier),
    fail: chunks.fail,
  };
}
