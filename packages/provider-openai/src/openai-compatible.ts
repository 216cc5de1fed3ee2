import {
  type Json,
  modelsOf,
  orAborted,
  type Provider,
  type ProviderCall,
  stateNeedsFor,
  systemClock,
} from "@tollgate/core/provider";
// The package's index also loads fetch, WebSocket and caches, which takes half of the startup time.
import Pool from "undici/lib/dispatcher/pool.js";
import { type Upstream, UpstreamAnswer } from "./call.ts";
import { isCredential, parseBaseUrl, readOptions } from "./configuration.ts";
import { type AnswerHead, type AnswerReceiver, Exchange } from "./exchange.ts";
import { invalidAnswer, misconfigured, notSent } from "./failures.ts";
import { itemsOf, membersOf, textOf } from "./json.ts";
import type { OpenaiCompatibleOptions } from "./options.ts";
import { createRequestWriter } from "./request-body.ts";
import { createRequestHeaders } from "./request-headers.ts";

// A call's own signal ends it much earlier. This applies if the caller set no limit.
const maxSilenceMs = 3_600_000;
/** Closes sockets that never connect. Calls stop waiting for them after their `connectWithin`. */
const maxConnectMs = 30_000;
const listWithinMs = 10_000;
const maxConnections = 4_096;
const maxListBytes = 4_194_304;
/** Replaces rejected options. It reaches nothing. */
const unusable: OpenaiCompatibleOptions = { baseURL: "" };

/**
 * A provider for any upstream with a Chat Completions API. It opens no connection before the first call. It never
 * follows redirects, never takes the host from a request, and sends only its own headers.
 *
 * Invalid options are listed in `problems`, which `createGateway` rejects. A call with invalid options fails with a ProviderError.
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
      {
        path,
        headers,
        body: null,
        totalBytes: maxListBytes,
        connectWithin: listWithinMs,
        clock,
      },
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
    connect: { timeout: maxConnectMs },
    headersTimeout: maxSilenceMs,
    bodyTimeout: maxSilenceMs,
    allowH2: false,
  });
}

/** Returns the credential of a call, or null for an upstream without keys. Returns a promise if `apiKey` is a function. */
function credentialOf(
  { apiKey, connection }: OpenaiCompatibleOptions,
  call: Pick<ProviderCall, "credential">,
): string | null | Promise<string | null> {
  // Never send a customer's call without a credential, even if the upstream would accept it.
  if (connection === "customer") return requireCredential(call.credential ?? undefined);
  return typeof apiKey === "function" ? credentialFrom(apiKey) : requireCredential(apiKey);
}

async function credentialFrom(apiKey: () => string | Promise<string>): Promise<string | null> {
  let value: unknown;
  try {
    value = await apiKey();
  } catch {
    throw notSent("credential_unavailable", "The provider's credential could not be read.");
  }
  return requireCredential(value ?? undefined);
}

function requireCredential(credential: unknown): string | null {
  if (credential === null || isCredential(credential)) return credential;
  throw notSent("credential_unavailable", "The provider's credential is invalid.");
}

/** Receives the answer to `GET /models`, and resolves with the model names. Rejects with a ProviderError if it isn't a list. */
class ModelNames implements AnswerReceiver {
  readonly #names = Promise.withResolvers<readonly string[]>();
  readonly #chunks: Uint8Array[] = [];

  get names(): Promise<readonly string[]> {
    return this.#names.promise;
  }

  head({ status }: AnswerHead): void {
    if (status !== 200)
      this.failed(invalidAnswer("no_model_list", "The provider returned no list of models."));
  }

  data(chunks: readonly Uint8Array[]): void {
    this.#chunks.push(...chunks);
  }

  end(): void {
    try {
      this.#names.resolve(namesIn(Buffer.concat(this.#chunks)));
    } catch (thrown) {
      this.failed(thrown);
    }
  }

  failed(thrown: unknown): void {
    this.#names.reject(thrown);
  }
}

function namesIn(bytes: Buffer): readonly string[] {
  return itemsOf(membersOf(parse(bytes))["data"]).flatMap(
    (item) => textOf(membersOf(item)["id"]) ?? [],
  );
}

function parse(bytes: Buffer): Json {
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch {
    throw invalidAnswer("invalid_json", "The provider's list of models is not JSON.");
  }
}
