import {
  modelsOf,
  orAborted,
  type Provider,
  stateNeedsFor,
  systemClock,
} from "@tollgate/core/provider";
// The package's own index also loads fetch, WebSocket and caches: half of what a start takes.
import Pool from "undici/lib/dispatcher/pool.js";
import { type Upstream, UpstreamAnswer } from "./call.ts";
import { parseBaseUrl, readOptions } from "./configuration.ts";
import { credentialOf } from "./credential.ts";
import { Exchange } from "./exchange.ts";
import { misconfigured } from "./failures.ts";
import { ModelNames } from "./list-models.ts";
import type { OpenaiCompatibleOptions } from "./options.ts";
import { createRequestWriter } from "./request-body.ts";
import { createRequestHeaders } from "./request-headers.ts";

// A call's own signal ends every wait much earlier; this is for a caller that set no limit at all.
const maxSilenceMs = 3_600_000;
const connectMs = 10_000;
const maxConnections = 4_096;
const maxListBytes = 4_194_304;
/** In place of options that were refused: it reaches nothing. */
const unusable: OpenaiCompatibleOptions = { baseURL: "" };

/**
 * A provider for any upstream that speaks the Chat Completions API. Nothing is opened before the first call. Redirects
 * are never followed, the host is never taken from a request, and only the provider's own headers are sent.
 *
 * Wrong options are listed in `problems`, which `createGateway` refuses; a call made nevertheless is a ProviderError.
 */
export function openaiCompatible(input: OpenaiCompatibleOptions): Provider {
  const read = readOptions(input);
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
  const upstream: Upstream | null =
    target && pool && problems.length === 0
      ? {
          pool,
          host: target.host,
          path: `${target.path}/chat/completions`,
          writeRequest,
          headersOf,
          credentialOf: (call) => credentialOf(options, call),
          clock,
        }
      : null;
  let closing: Promise<void> | undefined;

  async function listModels(signal: AbortSignal): Promise<readonly string[]> {
    if (!target || !pool || problems.length > 0) throw misconfigured();
    const credential = await orAborted(signal, async () =>
      credentialOf(options, { credential: null }),
    );
    const { headers } = headersOf(credential, false);
    const path = `${target.path}/models`;
    const list = new ModelNames();
    const exchange = new Exchange(
      pool,
      { path, headers, body: null, totalBytes: maxListBytes, clock },
      list,
    );
    try {
      return await orAborted(signal, () => list.names);
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
    complete: (call) => new UpstreamAnswer(upstream, call),
    ...(options.listModels === true ? { listModels } : {}),
    close() {
      closing ??= pool?.destroy() ?? Promise.resolve();
      return closing;
    },
  };
}

function openPool(origin: string): Pool {
  return new Pool(origin, {
    connections: maxConnections,
    connect: { timeout: connectMs },
    headersTimeout: maxSilenceMs,
    bodyTimeout: maxSilenceMs,
    allowH2: false,
  });
}
