import { type Provider, retryAfterMs } from "@tollgate/core/provider";
import {
  createRequestHeaders,
  type Dialect,
  httpProvider,
  membersOf,
  tokenCount,
} from "@tollgate/provider-http";
import { createAnswerReader, frameText } from "./answer-reader.ts";
import { type AnthropicProviderOptions, readOptions } from "./options.ts";
import { createCountWriter, createRequestWriter } from "./request-body.ts";
import { errorFormat, rateLimitWait } from "./upstream-errors.ts";

/**
 * A provider for Anthropic's Messages API, or for an upstream that has the same API. Its models are those of the vendor
 * `anthropic`, unless `vendor` says otherwise. It opens no connection before the first call. It never follows redirects,
 * never takes the host from a request, and sends only its own headers.
 *
 * Invalid options are listed in `problems`, which `createGateway` rejects. A call with invalid options fails with a
 * ProviderError.
 */
export function anthropic(input: AnthropicProviderOptions): Provider {
  const read = readOptions(input);
  const given = read.value ?? {};
  const options = { ...given, vendor: given.vendor ?? "anthropic" };
  return httpProvider(
    { ...options, cacheBreakpoints: options.cacheBreakpoints ?? true },
    {
      baseURL: options.baseURL ?? "https://api.anthropic.com/v1",
      problems: read.problems,
      path: "/messages",
      modelsPath: "/models?limit=1000",
      dialect: anthropicDialect(options),
      counting: {
        path: "/messages/count_tokens",
        write: createCountWriter(options),
        tokensIn: (body) => tokenCount(membersOf(body)["input_tokens"]),
      },
    },
  );
}

/** The protocol of the Messages API, with an upstream's variations. */
export function anthropicDialect(
  options: Pick<AnthropicProviderOptions, "headers" | "version" | "betas" | "thinking">,
): Dialect {
  const { headers, version = "2023-06-01", betas = [] } = options;
  return {
    writeRequest: createRequestWriter(options),
    headersOf: createRequestHeaders(headers, {
      credential: (value) => ({ "x-api-key": value }),
      own: { "anthropic-version": version, ...betaHeader(betas) },
    }),
    requestHeaders: ({ anthropic: own }) =>
      own?.betas === undefined ? null : betaHeader([...betas, ...own.betas]),
    createReader: createAnswerReader,
    frameText,
    errors: errorFormat,
    retryAfterMs: (answered, now) => retryAfterMs(answered, now) ?? rateLimitWait(answered, now),
  };
}

function betaHeader(betas: readonly string[]): Readonly<Record<string, string>> {
  return betas.length === 0 ? {} : { "anthropic-beta": [...new Set(betas)].join(",") };
}
