import type { GatewayRequest } from "../http/gateway-request.ts";
import type { GatewayResponse } from "../http/gateway-response.ts";
import type { GovernedCall } from "../pipeline/governed-call.ts";
import {
  type EmbeddingsCall,
  embeddingLimits,
  embeddingsBody,
  parseEmbeddings,
  vectorBytes,
} from "../wire/embeddings/embeddings.ts";
import { answerGoverned, type ClaimedRequest, commonOf, type RequestScope } from "./endpoint.ts";
import { presentBody } from "./present-answer.ts";
import { joinIfShort } from "./text-answer.ts";

/** POST /v1/embeddings: a governed call whose Step has no Session, Turn or step number (decision 0039). */
export function createEmbeddings(
  scope: RequestScope,
  request: GatewayRequest,
): Promise<GatewayResponse> {
  const { context } = scope;
  const { limits } = context;
  return answerGoverned<never, EmbeddingsCall>(scope, request, {
    conversations: null,
    limits: embeddingLimits(limits),
    read: (body) => parseEmbeddings(body, limits),
    // A small request can have an answer of many megabytes. `upstreamBytes` bounds every answer.
    answerBytes: (call) => Math.min(vectorBytes(call.request), limits.upstreamBytes),
    callOf: (caller, read, claim) => callOf(scope, request, { caller, read, claim }),
    present: (answer, call, ticket) =>
      presentBody(context, answer, ticket, ({ completion: { embeddings = [] }, usage }) =>
        joinIfShort(embeddingsBody(call, embeddings, usage)),
      ),
  });
}

function callOf(
  scope: RequestScope,
  request: GatewayRequest,
  { caller, read, claim }: ClaimedRequest<never, EmbeddingsCall>,
): GovernedCall {
  const { model, request: embedding } = read.call;
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
      conclude: () => ({ reply: [], response: null }),
    }),
  };
}
