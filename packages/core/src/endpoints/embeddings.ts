import type { GatewayRequest } from "../http/gateway-request.ts";
import type { GatewayResponse } from "../http/gateway-response.ts";
import type { GovernedCall, SettledAnswer } from "../pipeline/governed-call.ts";
import {
  type EmbeddingsCall,
  embeddingLimits,
  embeddingsBody,
  embeddingsList,
  parseEmbeddings,
} from "../wire/embeddings/embeddings.ts";
import { answerGoverned, type ClaimedRequest, commonOf, type RequestScope } from "./endpoint.ts";
import { presentBody } from "./present-answer.ts";

/** The texts of answers, which are written before their settlement. */
type WrittenLists = WeakMap<SettledAnswer, string>;

/** POST /v1/embeddings: vectors over the same line, recorded without Session, Turn and step number (decision 0039). */
export function createEmbeddings(
  scope: RequestScope,
  request: GatewayRequest,
): Promise<GatewayResponse> {
  const { context } = scope;
  const lists: WrittenLists = new WeakMap();
  return answerGoverned<never, EmbeddingsCall>(scope, request, {
    conversations: null,
    limits: embeddingLimits(context.limits),
    read: (body) => parseEmbeddings(body, context.limits),
    callOf: (caller, read, claim) => callOf(scope, request, { caller, read, claim }, lists),
    present: (answer, { model }) =>
      presentBody(context, answer, (settled) =>
        embeddingsBody(model, lists.get(settled) ?? "[]", settled.usage),
      ),
  });
}

function callOf(
  scope: RequestScope,
  request: GatewayRequest,
  { caller, read, claim }: ClaimedRequest<never, EmbeddingsCall>,
  lists: WrittenLists,
): GovernedCall {
  const { model, format, request: embedding } = read.call;
  const call = { model, stream: false, sessionId: null, turnId: null, droppedFields: {} };
  return {
    ...commonOf(scope, request, { caller, read: { ...read, call }, claim }),
    endpoint: "embeddings",
    repeatsAnswer: true,
    prepare: () => ({
      request: { messages: [] },
      embedding,
      transcript: [],
      instructions: null,
      referredClass: null,
      previousSessionId: null,
      storedMessages: 0,
      known: null,
      remember: null,
      async conclude(_, settled) {
        const { embeddings = [] } = settled.completion;
        lists.set(settled, await embeddingsList(embeddings, format));
        return { reply: [], response: null };
      },
    }),
  };
}
