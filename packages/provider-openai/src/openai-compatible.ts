import { hash } from "node:crypto";
import {
  type Clock,
  type CompletionEvent,
  type ConnectionOwnership,
  type ModelConfiguration,
  type Provider,
  type ProviderCall,
  systemClock,
} from "@tollgate/core/provider";
import { Pool } from "undici";
import { isCredential, parseBaseUrl, problemsOf } from "./configuration.ts";
import { startExchange } from "./exchange.ts";
import { notSent } from "./failures.ts";
import { readAnswer } from "./read-answer.ts";
import { type RequestDialect, requestBody } from "./request-body.ts";
import { untilAborted } from "./until-aborted.ts";

/** How an OpenAI-compatible upstream is reached. */
export interface OpenaiCompatibleOptions {
  /** Where `/chat/completions` is found, such as `https://api.example.com/v1`: http or https, no user, query or fragment. */
  readonly baseURL: string;
  /**
   * The platform's credential: a string, a function asked before every call, or null for an upstream without keys.
   * `undefined` is a problem, so that a missing variable of the environment is noticed. Not given on a customer connection.
   */
  readonly apiKey?: string | (() => string | Promise<string>) | null | undefined;
  /** Models by `<vendor>/<model>`, with their prices. Default: none listed. */
  readonly models?: Readonly<Record<string, ModelConfiguration>>;
  /** Whose account is used. Default `platform`; `customer` sends each organization's own credential. */
  readonly connection?: ConnectionOwnership;
  /** Headers sent with every call, besides the provider's own. */
  readonly headers?: Readonly<Record<string, string>>;
  /** What the upstream calls `<vendor>/<model>`. Default: the same. */
  readonly modelName?: (model: string) => string;
  /** The field that caps the answer. Default `max_completion_tokens`. */
  readonly maxTokensField?: RequestDialect["maxTokensField"];
  /** What a `developer` message is sent as. Default `developer`. */
  readonly developerRole?: RequestDialect["developerRole"];
  /** Whether the request's `store` and `metadata` are sent on. Default false: transcripts are kept by the gateway. */
  readonly forwardStore?: boolean;
  /** Where time comes from. Default: the machine's clock. */
  readonly clock?: Clock;
}

// A call's own signal ends every wait much earlier; this is for a caller that set no limit at all.
const longestSilenceMs = 3_600_000;
const connectMs = 10_000;
const mostConnections = 4_096;

/**
 * A provider for any upstream that speaks the Chat Completions API. Nothing is opened before the first call. Redirects
 * are never followed, the host is never taken from a request, and only the provider's own headers are sent.
 *
 * Wrong options are listed in `problems`, which `createGateway` refuses; a call made nevertheless is a ProviderError.
 */
export function openaiCompatible(options: OpenaiCompatibleOptions): Provider {
  const problems = problemsOf(options);
  const target = parseBaseUrl(options.baseURL);
  const clock = options.clock ?? systemClock;
  const pool = target && openPool(target.origin);
  const dialect: RequestDialect = {
    maxTokensField: options.maxTokensField ?? "max_completion_tokens",
    developerRole: options.developerRole ?? "developer",
    forwardStore: options.forwardStore ?? false,
  };
  let closing: Promise<void> | undefined;

  async function* complete(
    call: ProviderCall,
  ): AsyncGenerator<readonly CompletionEvent[], void, undefined> {
    if (!target || !pool || problems.length > 0)
      throw notSent("misconfigured", "The provider is not configured correctly.");
    call.signal.throwIfAborted();
    const credential = await credentialOf(options, call);
    const model = options.modelName?.(call.model) ?? call.model;
    const body = requestBody(model, call.request, call.stream, dialect);
    const bodySha256 = hash("sha256", body);
    yield [{ type: "request-sent", host: target.host, bodySha256 }];
    call.signal.throwIfAborted();

    const exchange = startExchange(pool, {
      path: `${target.path}/chat/completions`,
      headers: requestHeaders(credential, call.stream, options.headers),
      body,
      totalBytes: call.limits.totalBytes,
      signal: call.signal,
      clock,
    });
    let complete = false;
    try {
      yield* readAnswer(exchange, {
        seed: bodySha256,
        secret: credential,
        eventBytes: call.limits.eventBytes,
        clock,
      });
      complete = true;
    } finally {
      exchange.close(complete ? "complete" : "incomplete");
    }
  }

  return {
    contract: 1,
    connection: options.connection ?? "platform",
    models: options.models ?? {},
    problems,
    complete,
    close() {
      closing ??= pool?.destroy() ?? Promise.resolve();
      return closing;
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

/** The allowlist of what travels: nothing here comes from a caller's request. */
function requestHeaders(
  credential: string | null,
  stream: boolean,
  configured: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  const lowered = Object.entries(configured).map(([name, value]) => [name.toLowerCase(), value]);
  return {
    "user-agent": "tollgate",
    ...Object.fromEntries(lowered),
    ...(credential === null ? {} : { authorization: `Bearer ${credential}` }),
    "content-type": "application/json",
    accept: stream ? "text/event-stream, application/json" : "application/json",
    "accept-encoding": "identity",
  };
}

async function credentialOf(
  options: OpenaiCompatibleOptions,
  call: ProviderCall,
): Promise<string | null> {
  const credential = await givenCredential(options, call);
  if (credential === null || isCredential(credential)) return credential;
  throw notSent("credential_unavailable", "The provider's credential cannot be used.");
}

async function givenCredential(
  { apiKey, connection }: OpenaiCompatibleOptions,
  call: ProviderCall,
): Promise<unknown> {
  // Without a credential a customer's call must not leave, not even to an upstream that would take it.
  if (connection === "customer") return call.credential ?? undefined;
  if (typeof apiKey !== "function") return apiKey;
  try {
    return (await untilAborted(call.signal, async () => apiKey())) ?? undefined;
  } catch {
    call.signal.throwIfAborted();
    throw notSent("credential_unavailable", "The provider's credential could not be read.");
  }
}
