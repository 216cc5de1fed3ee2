import {
  type CompletionEvent,
  isLarge,
  modelsOf,
  otherWork,
  type Provider,
  type ProviderCall,
  secretHeaders,
  stateNeedsFor,
  systemClock,
} from "@tollgate/core/provider";
// The package's own index also loads fetch, WebSocket and caches: half of what a start takes.
import Pool from "undici/lib/dispatcher/pool.js";
import { asking, type ReadyRequest, type SentRequest } from "./asking.ts";
import { parseBaseUrl, readOptions } from "./configuration.ts";
import { credentialOf } from "./credential.ts";
import { type Exchange, startExchange } from "./exchange.ts";
import { notSent } from "./failures.ts";
import { readModelNames } from "./list-models.ts";
import type { OpenaiCompatibleOptions } from "./options.ts";
import { type AnswerReader, openAnswer, type ReadOptions } from "./read-answer.ts";
import { createRequestWriter } from "./request-body.ts";
import { createRequestHeaders } from "./request-headers.ts";

// A call's own signal ends every wait much earlier; this is for a caller that set no limit at all.
const longestSilenceMs = 3_600_000;
const connectMs = 10_000;
const mostConnections = 4_096;
const maxListBytes = 4_194_304;
/** In place of options that were refused: it reaches nothing. */
const unusable: OpenaiCompatibleOptions = { baseURL: "" };

/**
 * A provider for any upstream that speaks the Chat Completions API. Nothing is opened before the first call. Redirects
 * are never followed, the host is never taken from a request, and only the provider's own headers are sent.
 *
 * Wrong options are listed in `problems`, which `createGateway` refuses; a call made nevertheless is a ProviderError.
 */
export function openaiCompatible(written: OpenaiCompatibleOptions): Provider {
  const read = readOptions(written);
  const options = read.value ?? unusable;
  const problems = read.problems.map(({ message }) => message);
  const target = parseBaseUrl(options.baseURL);
  const clock = options.clock ?? systemClock;
  const pool = target && openPool(target.origin);
  const writeRequest = createRequestWriter({
    maxTokensField: options.maxTokensField ?? "max_completion_tokens",
    developerRole: options.developerRole ?? "developer",
    forwardStore: options.forwardStore ?? false,
  });
  const headersOf = createRequestHeaders(options.headers);
  let closing: Promise<void> | undefined;

  async function prepare(call: ProviderCall): Promise<ReadyRequest> {
    if (!target || !pool || problems.length > 0)
      throw notSent("misconfigured", "The provider is not configured correctly.");
    call.signal.throwIfAborted();
    const credential = await credentialOf(options, call);
    const { body, sha256 } = writeRequest(call);
    if (isLarge(body.length)) await otherWork();
    const bodySha256 = sha256();
    if (isLarge(body.length)) await otherWork();
    const headers = headersOf(credential, call.stream);
    return {
      event: { type: "request-sent", host: target.host, bodySha256 },
      send() {
        call.signal.throwIfAborted();
        const { signal, limits } = call;
        const path = `${target.path}/chat/completions`;
        const { totalBytes, eventBytes, bodyBytes } = limits;
        const exchange = startExchange(pool, { path, headers, body, totalBytes, signal, clock });
        const secrets = secretHeaders(headers);
        return answerOf(exchange, { seed: bodySha256, secrets, eventBytes, bodyBytes, clock });
      },
    };
  }

  async function listModels(signal: AbortSignal): Promise<readonly string[]> {
    if (!target || !pool || problems.length > 0)
      throw notSent("misconfigured", "The provider is not configured correctly.");
    const credential = await credentialOf(options, { credential: null, signal });
    const exchange = startExchange(pool, {
      path: `${target.path}/models`,
      headers: headersOf(credential, false),
      body: null,
      totalBytes: maxListBytes,
      signal,
      clock,
    });
    try {
      return await readModelNames(exchange);
    } finally {
      exchange.close("incomplete");
    }
  }

  return {
    contract: 1,
    connection: options.connection ?? "platform",
    ...modelsOf(options),
    ...(options.billing === undefined ? {} : { billing: options.billing }),
    problems,
    stateNeeds: (model) => stateNeedsFor(model, options),
    complete: (call) => ({ [Symbol.asyncIterator]: () => asking(() => prepare(call)) }),
    ...(options.listModels === true ? { listModels } : {}),
    close() {
      closing ??= pool?.destroy() ?? Promise.resolve();
      return closing;
    },
  };
}

/** The answer to a request on its way: it is opened when it is first read. */
function answerOf(exchange: Exchange, options: ReadOptions): SentRequest {
  let answer: AnswerReader | null = null;
  const open = async (): Promise<readonly CompletionEvent[] | null> => {
    answer = await openAnswer(exchange, options);
    return answer.read();
  };
  return {
    read: () => (answer === null ? open() : answer.read()),
    close(how) {
      answer?.stop();
      exchange.close(how);
    },
  };
}

function openPool(origin: string): Pool {
  return new Pool(origin, {
    connections: mostConnections,
    connect: { timeout: connectMs },
    headersTimeout: longestSilenceMs,
    bodyTimeout: longestSilenceMs,
    allowH2: false,
  });
}
