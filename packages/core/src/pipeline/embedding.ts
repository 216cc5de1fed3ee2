import {
  type Provider,
  type ProviderAnswer,
  type ProviderCall,
  ProviderError,
} from "../contracts/provider.ts";
import type { CompletionFold } from "../domain/completion.ts";
import type { EmbeddingRequest } from "../domain/embedding.ts";
import type { ModelId } from "../domain/model-id.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { ModelRoute, TargetRoute } from "../routing/route.ts";

/**
 * Checks that a name leads to one model, because vectors of different models can't be compared, and that every gateway
 * that serves it has embeddings.
 * @throws GatewayError `unsupported_value`
 */
export function requireEmbeddings(route: ModelRoute, named: TargetRoute | null): void {
  const routes = named?.targets.map((target) => target.route) ?? [route];
  if (!routes.every((each) => isSameModel(each.model, route.model)))
    throw unsupported("leads to models whose embeddings can't be compared: name one of them");
  if (!routes.every(({ provider }) => provider.embed))
    throw unsupported("is a model of a gateway without embeddings");
}

function unsupported(why: string): GatewayError {
  return new GatewayError("unsupported_value", `'model' ${why}.`, { param: "model" });
}

/** Whether a route may answer in place of another: an embeddings call only goes to the same model. */
export function mayReplace(
  { model, provider }: ModelRoute,
  other: ModelRoute,
  embedding: EmbeddingRequest | undefined,
): boolean {
  return embedding === undefined || (provider.embed && isSameModel(model, other.model)) === true;
}

function isSameModel(one: ModelId, other: ModelId): boolean {
  return one.vendor === other.vendor && one.model === other.model;
}

/** Asks a provider for embeddings. The answer may be as large as a whole stream. */
export function askForEmbeddings(
  provider: Provider,
  request: EmbeddingRequest,
  call: ProviderCall,
): ProviderAnswer {
  const { model, upstreamName, credential, signal, traceparent, connectWithin, limits } = call;
  const answer = provider.embed?.({
    model,
    upstreamName,
    request,
    credential,
    signal,
    limits: { ...limits, bodyBytes: limits.totalBytes },
    traceparent,
    connectWithin,
  });
  if (answer === undefined) throw new TypeError("the provider has no embeddings");
  return answer;
}

/** Whether an answer has exactly one vector for each input. */
export function hasAllVectors(fold: CompletionFold, { inputs }: EmbeddingRequest): boolean {
  const vectors = fold.vectors();
  return vectors?.size === inputs.length && inputs.every((_, at) => vectors.has(at));
}

export function missingVectors(): ProviderError {
  return new ProviderError("The provider didn't return one embedding for each input.", {
    reason: "invalid_answer",
    delivery: "unknown",
  });
}
