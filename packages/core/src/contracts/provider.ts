import type { CompletionEvent } from "../domain/completion-event.ts";
import type { CompletionRequest } from "../domain/completion-request.ts";
import type { ConnectionOwnership } from "../domain/policy-decision.ts";

/** What is configured of a model: prices in US dollars per million tokens, as numbers or decimal strings. */
export interface ModelConfiguration {
  readonly input?: number | string;
  readonly output?: number | string;
  readonly cachedInput?: number | string;
  /** The most tokens the model can answer with. */
  readonly maxOutputTokens?: number;
  /** Whether the model reasons before it answers. Default: as the price book knows it. */
  readonly reasons?: boolean;
}

/** One gateway: a way to reach models. */
export interface Provider {
  readonly contract: 1;
  /** `platform`: with a credential of the configuration. `customer`: with each organization's own Gateway API key. */
  readonly connection: ConnectionOwnership;
  /** The models it lists, by `<vendor>/<model>`. A model that is not listed is still routed. */
  readonly models: Readonly<Record<string, ModelConfiguration>>;
  /** What is wrong with its configuration, one sentence each, without secrets; `createGateway` refuses them. */
  readonly problems: readonly string[];
  /**
   * Asks a model. Each item holds the events of one upstream read, in order. `request-sent` comes alone before anything
   * leaves, `finish` before the end; ending without a `finish` means the answer was cut. Stops, and closes its
   * connection, when `call.signal` aborts or the iteration is ended early.
   * @throws ProviderError, and nothing else, for whatever the upstream does wrong.
   */
  complete(call: ProviderCall): AsyncIterable<readonly CompletionEvent[]>;
  /** Closes connections. Safe to call twice. */
  close(): Promise<void>;
}

/** One call of a model: one attempt of a Step. */
export interface ProviderCall {
  /** `<vendor>/<model>`, as it follows the gateway in the request's model id. */
  readonly model: string;
  readonly request: CompletionRequest;
  /** Whether to ask for a stream: exactly when the client did. */
  readonly stream: boolean;
  /** The organization's own credential on a customer-owned connection; null on a platform connection. */
  readonly credential: string | null;
  readonly signal: AbortSignal;
  /** Bytes, decoded: one event, and the whole answer. What is larger is a ProviderError. */
  readonly limits: { readonly eventBytes: number; readonly totalBytes: number };
}

/** What is known of a failed call: whether it left, and whether the upstream answered it. */
export type Delivery = "not-sent" | "answered" | "unknown";

/** The one error a provider throws. Its message may reach the caller and holds nothing of the upstream's text. */
export class ProviderError extends Error {
  override readonly name = "ProviderError";
  /** The upstream's HTTP status; null when it gave none. */
  readonly status: number | null;
  /** A short reason for the record: `connection_refused`, `status_503`, `invalid_event`, … */
  readonly reason: string;
  readonly delivery: Delivery;
  /** How long the upstream asked to wait, in milliseconds. */
  readonly retryAfterMs: number | null;
  /** Whether the wait was too long: the caller gets 504 instead of 502. */
  readonly timedOut: boolean;
  /** An error code of the upstream's, if it is a plain identifier. Callers see it only where `upstreamCode` knows it. */
  readonly code: string | null;
  /** A request field the upstream named, if it is a plain path. */
  readonly param: string | null;

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
      readonly cause?: unknown;
    },
  ) {
    super(message, "cause" in details ? { cause: details.cause } : undefined);
    this.status = details.status ?? null;
    this.reason = details.reason;
    this.delivery = details.delivery;
    this.retryAfterMs = details.retryAfterMs ?? null;
    this.timedOut = details.timedOut ?? false;
    this.code = details.code ?? null;
    this.param = details.param ?? null;
  }
}
