import type { CompletionEvent } from "../domain/completion-event.ts";
import type { CompletionRequest } from "../domain/completion-request.ts";
import type { EmbeddingRequest } from "../domain/embedding.ts";
import type { Message } from "../domain/message.ts";
import type { ConnectionOwnership, TargetStrategy } from "../domain/policy-decision.ts";
import { errorText, quotesSecret } from "../domain/provider-error-text.ts";
import { isExact, parseWithDigits } from "../kernel/json-guard.ts";
import { type JsonBounds, measureJson } from "../kernel/measure-json.ts";
import type { Json } from "../kernel/stable-json.ts";

/** US dollars as a number or a decimal string: 0 or more, with at most 9 decimals. */
export type UsdAmount = number | string;

/** Prices of tokens, in US dollars per million. */
export interface ConfiguredRates {
  /** Prompt tokens. A price needs both `input` and `output`, or neither. */
  readonly input?: UsdAmount;
  /** Completion tokens. */
  readonly output?: UsdAmount;
  /** Prompt tokens read from the provider's cache. Default: the `input` price. */
  readonly cachedInput?: UsdAmount;
  /** Prompt tokens written to the provider's cache: one price, or one for each lifetime. Default: the `input` price. */
  readonly cacheWrite?: UsdAmount | { readonly "5m"?: UsdAmount; readonly "1h"?: UsdAmount };
  /** Reasoning tokens, if they have a separate price. Default: the `output` price. */
  readonly reasoning?: UsdAmount;
  /** Audio tokens. Default: the `input` and `output` prices. */
  readonly audio?: { readonly input?: UsdAmount; readonly output?: UsdAmount };
  /** Image tokens, if the provider counts them. Default: the `input` and `output` prices. */
  readonly image?: { readonly input?: UsdAmount; readonly output?: UsdAmount };
}

/** A model's prices at one service tier. */
export interface ConfiguredPrice extends ConfiguredRates {
  /** US dollars per request. Default: 0; for a tier, the standard tier's. */
  readonly request?: UsdAmount;
  /** Prices that apply to the whole request if its prompt has more than `above` tokens, in ascending order of `above`. */
  readonly longPrompt?: readonly (ConfiguredRates & { readonly above: number })[];
}

/** The configuration of a model: its prices in US dollars per million tokens, its output limit, whether it reasons. */
export interface ModelConfiguration extends ConfiguredPrice {
  /** Prices of the other service tiers by name, such as `priority` and `flex`. */
  readonly tiers?: Readonly<Record<string, ConfiguredPrice>>;
  /** The most tokens the model can answer with. Default: the price book's value. */
  readonly maxOutputTokens?: number;
  /** Whether the model reasons before it answers. Default: the price book's value. */
  readonly reasons?: boolean;
}

/** How a gateway bills calls, if not by the price table at the service tier it reports. */
export interface Billing {
  /**
   * `trust` uses a cost that the provider reports instead of the price table. Default `ignore`: Tollgate records it next
   * to the cost.
   */
  readonly reportedCost?: "trust" | "ignore";
  /** How far a trusted cost may be from the price table, as a factor from 1 to 1,000. Default 2. Beyond it the table counts. */
  readonly reportedCostFactor?: number;
  /** The tiers, in addition to the standard one, that may serve a call that asks for none or for `auto`. Default: none. */
  readonly autoTiers?: readonly string[];
}

/** A model that a provider lists. */
export interface ListedModel extends ModelConfiguration {
  /**
   * The upstream's name of the model, such as a deployment's. Default: `<model>` if the provider's `vendor` is the
   * model's, otherwise `<vendor>/<model>`.
   */
  readonly upstreamName?: string;
}

/** The options that define a provider's models. */
export interface ModelOptions {
  /** Models by `<vendor>/<model>`, with their prices. Default: none listed. */
  readonly models?: Readonly<Record<string, ListedModel>>;
  /** Whether callers can use models that aren't listed. Default: true if `models` is empty, otherwise false. */
  readonly open?: boolean;
  /**
   * The vendor that the upstream leaves out of its model names. With `vendor: "openai"`, `openai/gpt-5` is `gpt-5`
   * upstream, and `openai/a/b` isn't a model. Other vendors' models keep the whole `<vendor>/<model>`. Default: none,
   * so every model keeps it.
   */
  readonly vendor?: string;
}

/** Reads a provider's models from its options. A provider that lists models is closed by default. */
export function modelsOf(options: ModelOptions): Pick<Provider, "models" | "open" | "vendor"> {
  const { models = {}, vendor = null } = options;
  return { models, open: options.open ?? Object.keys(models).length === 0, vendor };
}

/** Which provider state and cache breakpoints a model gets. */
export interface StateNeeds {
  /**
   * How far back to restore recorded state that a client's history lacks: the messages after the user's last one
   * (`turn`), the whole history, or none.
   */
  readonly restore: "turn" | "history" | "none";
  /**
   * Whether to send reasoning back as plain text: `own` only if a record shows that this gateway and vendor wrote it,
   * `always` whenever the client sends some, or `never`.
   */
  readonly reasoningText: "own" | "always" | "never";
  /** Whether to pass on a client's cache breakpoints. */
  readonly cacheBreakpoints: boolean;
}

/** A virtual model: its targets, by full id, and how one of them is chosen. */
export interface VirtualModel {
  readonly by: TargetStrategy;
  readonly targets: readonly { readonly model: string; readonly weight: number }[];
}

/** One gateway: a way to reach models. */
export interface Provider {
  readonly contract: 1;
  /** `platform`: with a credential of the configuration. `customer`: with each organization's own Gateway API key. */
  readonly connection: ConnectionOwnership;
  /** The models it lists, by `<vendor>/<model>`. No two may have the same upstream name. */
  readonly models: Readonly<Record<string, ListedModel>>;
  /** Whether callers can use models it doesn't list. If false, those are 404 before the policy is asked. */
  readonly open: boolean;
  /** The vendor that the upstream leaves out of its model names, or null. See `ModelOptions`. */
  readonly vendor: string | null;
  /** How its calls are billed. Default: by the price table alone. */
  readonly billing?: Billing;
  /** The problems of its configuration, one sentence each, without secrets. `createGateway` rejects them. */
  readonly problems: readonly string[];
  /** The provider state that the model `<vendor>/<model>` gets. Default: `stateNeedsFor` without options. */
  readonly stateNeeds?: (model: string) => StateNeeds;
  /**
   * Asks a model. Each item holds the events of one upstream read, in order. The first item is `request-sent` alone, before
   * anything is sent. `finish` comes before the end: an answer without it counts as cut off. Stops and closes its
   * connection when `call.signal` aborts or the iteration is ended early.
   * @throws ProviderError for any failure of the upstream, and no other error.
   */
  complete(call: ProviderCall): ProviderAnswer;
  /**
   * Asks a model for embeddings. The events are those of `complete`, with one `embedding` for each input instead of text.
   * Usage comes after the vectors and reports 0 completion tokens. Define it only if the upstream has embeddings.
   * @throws ProviderError for any failure of the upstream, and no other error.
   */
  embed?(call: EmbeddingCall): ProviderAnswer;
  /**
   * Asks the upstream for the names of its models, with the platform's credential. Define it only if the host opted in.
   * `GET /v1/models` shows these models if neither the configuration nor the prices name any. The gateway limits the wait
   * and caches the answer.
   */
  listModels?(signal: AbortSignal): Promise<readonly string[]>;
  /**
   * Asks the upstream how many input tokens a request has, with its tools and instructions. Define it only if the upstream can
   * count; otherwise the gateway estimates.
   * @throws ProviderError for any failure of the upstream
   */
  countTokens?(call: TokenCount): Promise<number>;
  /** Makes this a virtual gateway: its models by `any/<name>`. Nothing else of it is used. `virtual` creates one. */
  readonly virtual?: Readonly<Record<string, VirtualModel>>;
  /** Closes connections. Safe to call twice. */
  close(): Promise<void>;
}

/** The answer of a provider. Iterate it or subscribe a sink to it, not both, and only once. */
export interface ProviderAnswer extends AsyncIterable<readonly CompletionEvent[]> {
  /**
   * Passes the events to a sink in plain calls, for providers whose upstream answers by callbacks. The returned function
   * passes on everything already read, ends the call and closes its connection; the sink then gets nothing more, and
   * `call.signal` can be ignored.
   */
  subscribe?(sink: AnswerSink): () => void;
}

/** Receives the events of one call. After `ended` or `failed` it gets nothing more. */
export interface AnswerSink {
  /**
   * The events of one upstream read. Returns null if the sink can take more now. Otherwise returns a promise that resolves
   * when it can, and never rejects; the provider must wait for it.
   */
  events(events: readonly CompletionEvent[]): Promise<void> | null;
  /** The answer ended. */
  ended(): void;
  /** The call failed with a ProviderError. */
  failed(thrown: unknown): void;
}

/** One call of a model: one attempt of a Step. */
export interface ProviderCall {
  /** `<vendor>/<model>`: the request's model id without its gateway. */
  readonly model: string;
  /**
   * The upstream's name of the model, and the only one to send. The gateway derives it, and no two models of a gateway
   * share one. A name derived from `model` instead could reach a model that a policy forbids.
   */
  readonly upstreamName: string;
  readonly request: CompletionRequest;
  /**
   * The most tokens the answer is expected to have, as the call's budgets count it: the request's cap, the model's own, or
   * `limits.maxOutputTokens`. For upstreams that require a cap.
   */
  readonly outputCap: number;
  /**
   * The messages of an earlier call, if this call's messages begin with the same objects. A provider may cache the text it
   * wrote for them in a WeakMap with this list as the key, instead of writing it again.
   */
  readonly continues?: readonly Message[];
  /** Whether to ask for a stream, as the client did. */
  readonly stream: boolean;
  /** The organization's own credential for a customer-owned connection. Null for a platform connection. */
  readonly credential: string | null;
  readonly signal: AbortSignal;
  /** Limits in decoded bytes for one event, a whole stream, and an answer in one body. Throw a ProviderError beyond them. */
  readonly limits: {
    readonly eventBytes: number;
    readonly totalBytes: number;
    readonly bodyBytes: number;
  };
  /**
   * The attempt's W3C Trace Context header, from the option `traceparent`; null without one. Send it only if the provider is
   * configured to: to a third party, it links the calls of one user. Never send a `tracestate` or `baggage` header.
   */
  readonly traceparent: string | null;
  /** How long the request may wait for a connection, in milliseconds. Beyond it, fail with a `not-sent` ProviderError. */
  readonly connectWithin: number;
}

/**
 * One embeddings call: one attempt of a Step. Its answer is one body, and `limits.bodyBytes` lets it be as large as a
 * stream.
 */
export interface EmbeddingCall
  extends Omit<ProviderCall, "request" | "outputCap" | "continues" | "stream"> {
  readonly request: EmbeddingRequest;
}

/** One request to count, with the same members as a call. */
export type TokenCount = Pick<
  ProviderCall,
  "model" | "upstreamName" | "request" | "credential" | "signal" | "limits"
>;

/** Whether a failed call was sent, and if so, whether the upstream answered it. */
export type Delivery = "not-sent" | "answered" | "unknown";

/**
 * The only error that a provider throws. Its message may reach the caller, so keep the upstream's text out of it. Pass that
 * text as `upstreamError`, which only the attempt's record gets.
 */
export class ProviderError extends Error {
  override readonly name = "ProviderError";
  /** The upstream's HTTP status; null when it gave none. */
  readonly status: number | null;
  /** A short reason for the record: `connection_refused`, `status_503`, `invalid_event`, … */
  readonly reason: string;
  readonly delivery: Delivery;
  /** How long the upstream asked the client to wait, in milliseconds. */
  readonly retryAfterMs: number | null;
  /** Whether the upstream took too long. Then the caller gets 504 instead of 502. */
  readonly timedOut: boolean;
  /** The upstream's error code, if it is a plain identifier. Callers see it only if `upstreamCode` knows it. */
  readonly code: string | null;
  /** A request field the upstream named, if it is a plain path. */
  readonly param: string | null;
  /** Private, so logging the error doesn't show it. It can quote the prompt. */
  #text: string | null;

  constructor(
    message: string,
    details: {
      readonly reason: string;
      readonly delivery: Delivery;
      readonly status?: number | null;
      readonly retryAfterMs?: number | null;
      readonly timedOut?: boolean;
      readonly code?: string | null;
      readonly param?: string | null;
      /** The upstream's error text, or the body of its error response. See `errorText`. */
      readonly upstreamError?: unknown;
      /** The credentials that the call used, to remove from `upstreamError`, `code` and `param`. */
      readonly secrets?: readonly string[];
      readonly cause?: unknown;
    },
  ) {
    super(message, "cause" in details ? { cause: details.cause } : undefined);
    this.status = details.status ?? null;
    this.reason = details.reason;
    this.delivery = details.delivery;
    this.retryAfterMs = details.retryAfterMs ?? null;
    this.timedOut = details.timedOut ?? false;
    const { code = null, param = null, secrets = [] } = details;
    this.code = unlessQuoting(code, secrets);
    this.param = unlessQuoting(param, secrets);
    this.#text = errorText(details.upstreamError, secrets);
  }

  /** The upstream's own text, bounded and without secrets: for the attempt's record, never for callers. */
  get text(): string | null {
    return this.#text;
  }

  /** Removes further credentials from the upstream's text. Drops the code and the field if they quote one. */
  redact(secrets: readonly string[]): this {
    this.#text = errorText(this.#text, secrets);
    const code = unlessQuoting(this.code, secrets);
    const param = unlessQuoting(this.param, secrets);
    return Object.assign(this, { code, param });
  }
}

function unlessQuoting(name: string | null, secrets: readonly string[]): string | null {
  return name === null || quotesSecret(name, secrets) ? null : name;
}

const maxWaitMs = 3_600_000;

type HeaderValue = string | readonly string[] | undefined;

/**
 * Returns how long an upstream asks the client to wait, in milliseconds, at most an hour. Reads `retry-after-ms`, otherwise
 * `retry-after` in seconds or as a date. Returns null if neither has a valid value. The names in `headers` must be lower
 * case, and `now` is in milliseconds since the epoch.
 */
export function retryAfterMs(
  headers: Readonly<Record<string, HeaderValue>>,
  now: number,
): number | null {
  const { "retry-after-ms": milliseconds, "retry-after": either } = headers;
  const wait = number(milliseconds, 1) ?? number(either, 1_000) ?? date(either, now);
  return wait === null ? null : Math.min(wait, maxWaitMs);
}

function number(value: HeaderValue, unit: number): number | null {
  return typeof value === "string" && /^\d{1,12}(\.\d{1,6})?$/.test(value)
    ? Math.ceil(Number(value) * unit)
    : null;
}

function date(value: HeaderValue, now: number): number | null {
  // Date.parse accepts far more than HTTP dates, such as "-1".
  if (typeof value !== "string" || !/^[A-Z][a-z]{2}, .{10,30} GMT$/.test(value)) return null;
  const at = Date.parse(value);
  return Number.isNaN(at) ? null : Math.max(0, at - now);
}

// Parsing more than this at once would block the process.
const bounds: JsonBounds = {
  depth: 100_000,
  values: 400_000,
  members: 100_000,
  numberLength: 100_000,
};
const smallText = 65_536;

/**
 * Whether an upstream's JSON text (an event of a stream, or a whole body) is too much to parse at once. The limits are
 * 400,000 values, 100,000 members in all objects together, 100,000 levels of nesting, and 100,000 characters in one number.
 * A text of up to 65,536 characters is never too much. Providers call this before they parse a text, and fail the call with
 * `too_many_values` if it returns true.
 */
export function isTooMuchJson(text: string): boolean {
  return text.length > smallText && measureJson(text, bounds) === null;
}

/** How many values are parsed at most in the arguments of one request's tool calls. */
const maxArgumentValues = 100_000;
/** Parsing takes this many times as long if it keeps digits. */
const costOfDigits = 4;

/**
 * Creates a function that parses the arguments of one request's tool calls, for providers that send them as values. It
 * returns undefined for arguments that aren't JSON, that exceed the limits of `isTooMuchJson`, that nest more than 1,000
 * levels deep, or that have more than 100,000 values together with those read before. Send such arguments as text. A number
 * that would lose digits becomes an object that `JSON.stringify` writes as that number. Alone, it isn't read. Each value of
 * arguments with such a number counts as four.
 */
export function createArgumentsReader(): (text: string) => Json | undefined {
  let values = maxArgumentValues;
  return (text) => {
    // JSON.stringify fails at a few thousand levels.
    const measure = measureJson(text, { ...bounds, depth: 1_000, values });
    if (measure === null) return undefined;
    const losesDigits = measure.longNumbers.some((number) => !isExact(number));
    const cost = measure.values * (losesDigits ? costOfDigits : 1);
    if (cost > values || (losesDigits && measure.values === 1)) return undefined;
    values -= cost;
    try {
      const value: Json = losesDigits ? parseWithDigits(text) : JSON.parse(text);
      return value;
    } catch {
      return undefined;
    }
  };
}
