import { hash } from "node:crypto";
import {
  addChunk,
  type EmbeddingCall,
  type Json,
  modelsOf,
  orAborted,
  type Provider,
  type ProviderAnswer,
  type ProviderCall,
  stateNeedsFor,
  systemClock,
  type TokenCount,
} from "@tollgate/core/provider";
// The package's index also loads fetch, WebSocket and caches, which takes half of the startup time.
import Pool from "undici/lib/dispatcher/pool.js";
import { itemsOf, membersOf, textOf } from "./answer-json.ts";
import { bodyIn, type Upstream, UpstreamAnswer } from "./call.ts";
import { type HttpOptions, isCredential, parseBaseUrl } from "./configuration.ts";
import type { AnswerReader, AnswerReaderOptions, Dialect, WrittenRequest } from "./dialect.ts";
import { errorAnswer } from "./error-answer.ts";
import { type AnswerHead, type AnswerReceiver, Exchange } from "./exchange.ts";
import { invalidAnswer, misconfigured, notSent } from "./failures.ts";

// A call's own signal ends it much earlier. This applies if the caller set no limit.
const maxSilenceMs = 3_600_000;
const socketOptions = {
  /** Closes sockets that never connect. Calls stop waiting for them after their `connectWithin`. */
  timeout: 30_000,
  /** A socket with this many unread bytes is not read. Each read takes up to 64 KiB, so a paused one keeps little more. */
  highWaterMark: 16_384,
};
const connectWithin = 10_000;
const maxConnections = 4_096;
const maxListBytes = 4_194_304;
const maxCountBytes = 65_536;

/** Where an upstream is, and which protocol it has. */
export interface HttpUpstream {
  readonly baseURL: string;
  /** The problems of the options. A call of a provider with problems fails. */
  readonly problems: readonly { readonly message: string }[];
  /** The path of calls, and of the list of models, below `baseURL`. */
  readonly path: string;
  readonly modelsPath: string;
  readonly dialect: Dialect;
  /** How the upstream counts the tokens of a request. Default: it can't. */
  readonly counting?: TokenCounting;
  /** How the upstream is asked for embeddings. Default: it has none. */
  readonly embedding?: EmbeddingDialect;
}

/** A way to ask an upstream for embeddings. Everything else is as in its dialect. */
export interface EmbeddingDialect {
  /** Below the upstream's `baseURL`. */
  readonly path: string;
  /** Serializes the request. */
  write(call: EmbeddingCall): string;
  createReader(options: AnswerReaderOptions): AnswerReader;
}

/** A way to ask an upstream for the tokens of a request. */
export interface TokenCounting {
  /** Below the upstream's `baseURL`. */
  readonly path: string;
  /** Serializes the request. @throws ProviderError for a request that the upstream has no form for */
  write(call: TokenCount): string;
  /** Undefined if the answer has no count. */
  tokensIn(body: Json): number | undefined;
}

/**
 * Creates a provider from its options and its protocol. It opens no connection before the first call. It never follows
 * redirects, never takes the host from a request, and sends only its own headers.
 */
export function httpProvider(
  options: HttpOptions,
  { baseURL, problems: found, path, modelsPath, dialect, counting, embedding }: HttpUpstream,
): Provider {
  const problems = found.map(({ message }) => message);
  const target = parseBaseUrl(baseURL);
  const clock = options.clock ?? systemClock;
  const pool = target && openPool(target.origin);
  const upstream: Upstream | null =
    target && pool && problems.length === 0
      ? {
          pool,
          host: target.host,
          path: `${target.path}${path}`,
          dialect,
          credentialOf: (call) => credentialOf(options, call),
          traces: options.trace === "send",
          clock,
        }
      : null;
  let closing: Promise<void> | undefined;

  async function listModels(signal: AbortSignal): Promise<readonly string[]> {
    if (!target || upstream === null) throw misconfigured();
    const body = await ask(upstream, {
      path: `${target.path}${modelsPath}`,
      body: null,
      call: { credential: null, signal },
      headers: null,
      maxBytes: maxListBytes,
      what: { reason: "no_model_list", name: "list of models" },
    });
    return itemsOf(membersOf(body)["data"]).flatMap((item) => textOf(membersOf(item)["id"]) ?? []);
  }

  async function countTokens(how: TokenCounting, call: TokenCount): Promise<number> {
    if (!target || upstream === null) throw misconfigured();
    const answered = await ask(upstream, {
      path: `${target.path}${how.path}`,
      body: how.write(call),
      call,
      headers: dialect.requestHeaders?.(call.request) ?? null,
      maxBytes: maxCountBytes,
      what: { reason: null, name: "count of tokens" },
    });
    const tokens = how.tokensIn(answered);
    if (tokens === undefined)
      throw invalidAnswer("invalid_answer", "The provider returned no count of tokens.");
    return tokens;
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
    ...(embedding
      ? {
          embed: (call: EmbeddingCall) =>
            embed(upstream, { root: target?.path ?? "", how: embedding }, call),
        }
      : {}),
    ...(counting ? { countTokens: (call: TokenCount) => countTokens(counting, call) } : {}),
    close() {
      closing ??= pool?.destroy() ?? Promise.resolve();
      return closing;
    },
  };
}

/** Asks an upstream for embeddings. `root` is the path of its `baseURL`. */
export function embed(
  upstream: Upstream | null,
  { root, how }: { readonly root: string; readonly how: EmbeddingDialect },
  call: EmbeddingCall,
): ProviderAnswer {
  const { createReader } = how;
  const asked = upstream && {
    ...upstream,
    path: `${root}${how.path}`,
    dialect: dialectOf(upstream.dialect, {
      writeRequest: () => written(how.write(call)),
      createReader,
    }),
  };
  return new UpstreamAnswer(asked, {
    ...call,
    request: { messages: [] },
    outputCap: 0,
    stream: false,
  });
}

/** A dialect for calls without a request of their own headers. */
function dialectOf(
  { requestHeaders: _, ...common }: Dialect,
  own: Pick<Dialect, "writeRequest" | "createReader">,
): Dialect {
  return { ...common, ...own };
}

function written(body: string): WrittenRequest {
  return { body, sha256: () => hash("sha256", body) };
}

function openPool(origin: string): Pool {
  return new Pool(origin, {
    connections: maxConnections,
    connect: socketOptions,
    headersTimeout: maxSilenceMs,
    bodyTimeout: maxSilenceMs,
    allowH2: false,
  });
}

/** Returns the credential of a call, or null for an upstream without keys. Returns a promise if `apiKey` is a function. */
function credentialOf(
  { apiKey, connection }: HttpOptions,
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

/** A question to an upstream, with an answer in one small JSON body. */
interface Question {
  readonly path: string;
  /** Sent with POST; null for a GET. */
  readonly body: string | Buffer | null;
  readonly call: Pick<ProviderCall, "credential" | "signal">;
  /** Headers of this question alone. */
  readonly headers: Readonly<Record<string, string>> | null;
  readonly maxBytes: number;
  readonly what: AnswerKind;
}

/** The name of an answer, and the reason of the failure without one. Null if the failure has the upstream's status. */
interface AnswerKind {
  readonly name: string;
  readonly reason: string | null;
}

async function ask(upstream: Upstream, question: Question): Promise<Json> {
  const { path, body, call, headers: own, maxBytes: totalBytes, what } = question;
  const { pool, dialect, clock } = upstream;
  const credential = await orAborted(call.signal, async () => upstream.credentialOf(call));
  const { headers: common, secrets } = dialect.headersOf(credential, false);
  const answer = new WholeAnswer(what, ({ status, headers: answered }, read) =>
    errorAnswer(read, {
      status,
      secrets,
      retryAfterMs: dialect.retryAfterMs(answered, clock.now()),
      format: dialect.errors,
    }),
  );
  const headers = own === null ? common : { ...common, ...own };
  const options = { path, headers, body, totalBytes, connectWithin, clock };
  const exchange = new Exchange(pool, options, answer);
  try {
    return await orAborted(call.signal, () => answer.json);
  } finally {
    exchange.close("incomplete");
  }
}

/** Receives the answer to a question, and resolves with its JSON. Rejects with a ProviderError if it has none. */
class WholeAnswer implements AnswerReceiver {
  readonly #json = Promise.withResolvers<Json>();
  readonly #chunks: Uint8Array[] = [];
  readonly #what: AnswerKind;

  /** The head of an answer that is an error. */
  #refusal: AnswerHead | null = null;
  readonly #errorOf: (head: AnswerHead, body: Json) => Error;

  constructor(what: AnswerKind, errorOf: (head: AnswerHead, body: Json) => Error) {
    this.#what = what;
    this.#errorOf = errorOf;
  }

  get json(): Promise<Json> {
    return this.#json.promise;
  }

  head(head: AnswerHead): void {
    if (head.status === 200) return;
    if (this.#what.reason === null) this.#refusal = head;
    else
      this.failed(invalidAnswer(this.#what.reason, `The provider returned no ${this.#what.name}.`));
  }

  data(chunks: readonly Uint8Array[]): void {
    for (const chunk of chunks) addChunk(this.#chunks, chunk);
  }

  end(): void {
    if (this.#refusal !== null) {
      this.failed(this.#errorOf(this.#refusal, bodyIn(this.#chunks)));
      return;
    }
    try {
      this.#json.resolve(JSON.parse(Buffer.concat(this.#chunks).toString("utf8")));
    } catch {
      this.failed(invalidAnswer("invalid_json", `The provider's ${this.#what.name} is not JSON.`));
    }
  }

  failed(thrown: unknown): void {
    this.#json.reject(thrown);
  }
}
