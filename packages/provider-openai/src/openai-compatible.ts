import { type Provider, retryAfterMs } from "@tollgate/core/provider";
import { createRequestHeaders, type Dialect, httpProvider } from "@tollgate/provider-http";
import { createAnswerReader, errorFormat, frameText } from "./answer-reader.ts";
import { embeddingDialect } from "./embeddings.ts";
import { type OpenaiCompatibleOptions, readOptions } from "./options.ts";
import { createRequestWriter } from "./request-body.ts";

/** Replaces rejected options. It reaches nothing. */
const unusable: OpenaiCompatibleOptions = { baseURL: "" };

/**
 * A provider for any upstream with a Chat Completions API, and its embeddings. It opens no connection before the first call.
 * It never follows redirects, never takes the host from a request, and sends only its own headers.
 *
 * Invalid options are listed in `problems`, which `createGateway` rejects. A call with invalid options fails with a
 * ProviderError.
 */
export function openaiCompatible(input: OpenaiCompatibleOptions): Provider {
  const read = readOptions(input);
  const options = read.value ?? unusable;
  return httpProvider(options, {
    baseURL: options.baseURL,
    problems: read.problems,
    path: "/chat/completions",
    modelsPath: "/models",
    dialect: openaiDialect(options),
    embedding: embeddingDialect,
  });
}

/** The Chat Completions protocol, with an upstream's variations. */
export function openaiDialect({
  headers,
  maxTokensField = "max_completion_tokens",
  developerRole = "developer",
  forwardStore = false,
}: Partial<OpenaiCompatibleOptions>): Dialect {
  return {
    writeRequest: createRequestWriter({ maxTokensField, developerRole, forwardStore }),
    headersOf: createRequestHeaders(headers),
    createReader: createAnswerReader,
    frameText,
    errors: errorFormat,
    retryAfterMs,
  };
}
