import type { CompletionEvent, Json, UsageReport } from "@tollgate/core/provider";
import {
  type AnswerReader,
  type EmbeddingDialect,
  errorEvent,
  errorIn,
  invalidAnswer,
  invalidEvent,
  isList,
  isObject,
  type JsonObject,
  labelOf,
  membersOf,
  tokenCount,
} from "@tollgate/provider-http";
import { errorFormat } from "./answer-reader.ts";
import { usageReport } from "./usage-report.ts";

/**
 * The embeddings of an OpenAI-compatible API. Asks for vectors in base64, whatever the client wants: as numbers, a large
 * answer takes too long to parse. Upstreams that only know numbers may send them.
 */
export const embeddingDialect: EmbeddingDialect = {
  path: "/embeddings",
  write: ({ upstreamName, request: { inputs, dimensions, user } }) =>
    JSON.stringify({
      model: upstreamName,
      input: inputs,
      encoding_format: "base64",
      dimensions,
      user,
    }),
  createReader: ({ secrets }) => createEmbeddingReader(secrets),
};

function createEmbeddingReader(secrets: readonly string[]): AnswerReader {
  let answered = false;
  return {
    add() {
      throw invalidEvent("The provider sent a stream instead of embeddings.");
    },
    addWhole(body, into) {
      const error = errorIn(body);
      if (error !== null) throw errorEvent(error, { answered, secrets, format: errorFormat });
      const { data, model, usage } = membersOf(body);
      if (!isList(data)) throw noEmbeddings();
      into.push({ type: "answer-started", ...labelOf("providerModel", model) });
      for (const [place, item] of data.entries()) into.push(embedding(membersOf(item), place));
      const report = usageOf(usage);
      if (report !== null) into.push({ type: "usage", usage: report });
      answered = true;
    },
    written: () => answered,
    finished: () => answered,
    ended: () => false,
    finish(into) {
      into.push({ type: "finish", reason: "stop" });
    },
  };
}

function embedding({ index, embedding: vector }: JsonObject, place: number): CompletionEvent {
  const isVector = typeof vector === "string" || isNumbers(vector);
  if (!isVector) throw noEmbeddings();
  return { type: "embedding", index: tokenCount(index) ?? place, vector };
}

function isNumbers(value: Json | undefined): value is readonly number[] {
  return isList(value) && value.every((item) => typeof item === "number");
}

/** Embeddings have no output. Some upstreams report only a total. */
function usageOf(usage: Json | undefined): UsageReport | null {
  const report = usageReport(usage);
  const total = isObject(usage) ? tokenCount(usage["total_tokens"]) : undefined;
  if (report === null && total === undefined) return null;
  return {
    ...(total === undefined ? {} : { promptTokens: total }),
    ...report,
    completionTokens: 0,
  };
}

function noEmbeddings(): Error {
  return invalidAnswer("invalid_answer", "The provider's answer contains no embeddings.");
}
