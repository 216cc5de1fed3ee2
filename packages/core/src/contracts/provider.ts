import type { CompletionEvent } from "../domain/completion-event.ts";
import type { CompletionRequest } from "../domain/completion-request.ts";
import type { ConnectionOwnership } from "../domain/policy-decision.ts";

/** US dollars, as a number or a decimal string, from 0 and to the nanodollar. */
export type UsdAmount = number | string;

/** What tokens cost, in US dollars per million. */
export interface ConfiguredRates {
  /** Prompt tokens; `input` and `output` go together. */
  readonly input?: UsdAmount;
  /** Completion tokens. */
  readonly output?: UsdAmount;
  /** Prompt tokens read from the provider's cache. Default: as `input`. */
  readonly cachedInput?: UsdAmount;
  /** Prompt tokens written to the provider's cache: one price, or by how long they are kept. Default: as `input`. */
  readonly cacheWrite?: UsdAmount | { readonly "5m"?: UsdAmount; readonly "1h"?: UsdAmount };
  /** Reasoning tokens, where they are priced apart. Default: as `output`. */
  readonly reasoning?: UsdAmount;
  /** Sound. Default: as `input` and `output`. */
  readonly audio?: { readonly input?: UsdAmount; readonly output?: UsdAmount };
  /** Images, where the provider counts them in tokens. Default: as `input` and `output`. */
  readonly image?: { readonly input?: UsdAmount; readonly output?: UsdAmount };
}

/** What a model costs at one service tier. */
export interface ConfiguredPrice extends ConfiguredRates {
  /** US dollars per request. Default: none, and for a tier that of the standard one. */
  readonly request?: UsdAmount;
  /** Prices of the whole request instead, where its prompt has more than `above` tokens; ascending. */
  readonly longPrompt?: readonly (ConfiguredRates & { readonly above: number })[];
}

/** What is configured of a model: prices in US dollars per million tokens, and what else is known of it. */
export interface ModelConfiguration extends ConfiguredPrice {
  /** The prices of other service tiers than the standard one, such as `priority` and `flex`, by name. */
  readonly tiers?: Readonly<Record<string, ConfiguredPrice>>;
  /** The most tokens the model can answer with. Default: as the price book knows it. */
  readonly maxOutputTokens?: number;
  /** Whether the model reasons before it answers. Default: as the price book knows it. */
  readonly reasons?: boolean;
}

/** How a gateway's calls are billed, where that differs from a price table read by the tier it reports. */
export interface Billing {
  /**
   * Whether a cost that the provider itself reports counts instead of the price table. Default `ignore`: it is recorded
   * next to the cost.
   */
  readonly reportedCost?: "trust" | "ignore";
  /** By what factor a trusted cost may leave the bounds of the price table, 1 to 1,000. Default 2; outside of them the table counts. */
  readonly reportedCostFactor?: number;
  /** The tiers at which a call may be served that asks for none, or for `auto`, besides the standard one. Default: none. */
  readonly autoTiers?: readonly string[];
}

/** A model that a provider lists. */
export interface ListedModel extends ModelConfiguration {
  /**
   * What the upstream calls the model, such as the name of a deployment. Default: `<vendor>/<model>`, without its vendor
   * where that is the provider's `vendor`.
   */
  readonly upstreamName?: string;
}

/** The options by which a provider says which models it has. */
export interface ModelOptions {
  /** Models by `<vendor>/<model>`, with their prices. Default: none listed. */
  readonly models?: Readonly<Record<string, ListedModel>>;
  /** Whether models that are not listed can be called too. Default: only if `models` lists none. */
  readonly open?: boolean;
  /**
   * The vendor whose models the upstream names without their vendor: with `vendor: "openai"`, `openai/gpt-5` is `gpt-5`
   * upstream, and `openai/a/b` is no model. Models of all other vendors keep their whole `<vendor>/<model>`. Default:
   * every model does.
   */
  readonly vendor?: string;
}

/** What a model takes back of what came with its answers, and of what clients add for it. */
export interface StateNeeds {
  /**
   * How far back recorded state is restored where a client's history lacks it: the messages after the last one of the
   * user, the whole history, or nothing.
   */
  readonly restore: "turn" | "history" | "none";
  /**
   * Whether reasoning goes back as plain text: `own` where it is known that this gateway and vendor wrote it, `always`
   * wherever a client brings some, `never` at all.
   */
  readonly reasoningText: "own" | "always" | "never";
  /** Whether a client's cache breakpoints are sent on. */
  readonly cacheBreakpoints: boolean;
}

/** One gateway: a way to reach models. */
export interface Provider {
  readonly contract: 1;
  /** `platform`: with a credential of the configuration. `customer`: with each organization's own Gateway API key. */
  readonly connection: ConnectionOwnership;
  /** The models it lists, by `<vendor>/<model>`. No two may have the same upstream name. */
  readonly models: Readonly<Record<string, ListedModel>>;
  /** Whether models it does not list can be called too. Where it is false they are 404, before any policy. */
  readonly open: boolean;
  /** The vendor whose models the upstream names without their vendor; null for none. See `ModelOptions`. */
  readonly vendor: string | null;
  /** How its calls are billed. Absent: by the price table alone. */
  readonly billing?: Billing;
  /** What is wrong with its configuration, one sentence each, without secrets; `createGateway` refuses them. */
  readonly problems: readonly string[];
  /**
   * What the model `<vendor>/<model>` takes back. Default: what `stateNeedsFor` says without options.
   */
  readonly stateNeeds?: (model: string) => StateNeeds;
  /**
   * Asks a model. Each item holds the events of one upstream read, in order. `request-sent` comes alone before anything
   * leaves, `finish` before the end; ending without a `finish` means the answer was cut. Stops, and closes its
   * connection, when `call.signal` aborts or the iteration is ended early.
   * @throws ProviderError, and nothing else, for whatever the upstream does wrong.
   */
  complete(call: ProviderCall): AsyncIterable<readonly CompletionEvent[]>;
  /**
   * The names of the upstream's own models, asked with the platform's credential where the host opted in; `GET /v1/models`
   * shows them if neither configuration nor prices know any. Absent: the upstream isn't asked. The gateway bounds the
   * wait and remembers the answer.
   */
  listModels?(signal: AbortSignal): Promise<readonly string[]>;
  /** Closes connections. Safe to call twice. */
  close(): Promise<void>;
}

/** One call of a model: one attempt of a Step. */
export interface ProviderCall {
  /** `<vendor>/<model>`, as it follows the gateway in the request's model id. */
  readonly model: string;
  /**
   * What the upstream calls the model: the only name to send. The gateway derives it, and no two models of a gateway
   * share one. A name made from `model` instead could reach a model that a policy forbids.
   */
  readonly upstreamName: string;
  readonly request: CompletionRequest;
  /** Whether to ask for a stream: exactly when the client did. */
  readonly stream: boolean;
  /** The organization's own credential on a customer-owned connection; null on a platform connection. */
  readonly credential: string | null;
  readonly signal: AbortSignal;
  /** Bytes, decoded: one event, a whole stream, and an answer in one body. What is larger is a ProviderError. */
  readonly limits: {
    readonly eventBytes: number;
    readonly totalBytes: number;
    readonly bodyBytes: number;
  };
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
