import type { RetryRules } from "./attempts/retry.ts";
import type { RateLimitConfiguration } from "./budgets/rate-limits.ts";
import type { BudgetConfiguration } from "./budgets/read-budget.ts";
import type { SecretKeys } from "./connections/key-ring.ts";
import type { Authenticate } from "./contracts/authenticate.ts";
import type { EvidenceSigner } from "./contracts/evidence-signer.ts";
import type { Observer, TraceParent } from "./contracts/observer.ts";
import type { Policy } from "./contracts/policy.ts";
import type { PriceBook } from "./contracts/price-book.ts";
import type { Provider } from "./contracts/provider.ts";
import type { SecretBox } from "./contracts/secret-box.ts";
import type { Store } from "./contracts/store.ts";
import type { LeadingSystem } from "./domain/api-key.ts";
import type { Deadlines, Limits } from "./domain/limits.ts";
import type { ModelAliases } from "./domain/model-id.ts";
import type { Retention } from "./domain/retention.ts";
import type { Clock } from "./kernel/clock.ts";
import type { Duration } from "./kernel/duration.ts";
import type { IdSource } from "./kernel/ids.ts";
import type { ProcessLoad } from "./kernel/process-load.ts";
import type { UpstreamConfiguration } from "./pipeline/upstreams.ts";
import type { PriceTable } from "./routing/configured-prices.ts";

/** The options of `createGateway`. Only `store` and `providers` are required. */
export interface GatewayOptions<Gateway extends string = string> {
  /** Persists everything Tollgate governs: `memoryStore()`, `sqliteStore(…)`, `postgresStore(…)`. */
  readonly store: Store;
  /** Providers by gateway name, which is the first part of their model ids. */
  readonly providers: Readonly<Record<Gateway, Provider>>;
  /** Default: every request is permitted, and decisions say that there is no policy. */
  readonly policy?: Policy<NoInfer<Gateway>>;
  readonly budgets?: readonly BudgetConfiguration[];
  /** Smooth limits on requests, tokens and concurrent Steps. A request above one gets 429 `rate_limit_exceeded`. */
  readonly rateLimits?: readonly RateLimitConfiguration[];
  /**
   * Plain names for models, for clients that can't send longer ids: `{ "gpt-5": "openai/openai/gpt-5" }`. Each leads to the id of
   * a model or of a virtual model. At most 100. An API key can have its own.
   */
  readonly aliases?: ModelAliases;
  /** Data classes, the least sensitive first. Default `D0_PUBLIC`, `D1_INTERNAL`, `D2_CONFIDENTIAL`, `D3_RESTRICTED`. */
  readonly dataClasses?: readonly string[];
  /** Prices by full model id, or a price book such as a catalog. Configured prices take precedence over a book. */
  readonly prices?: PriceBook | PriceTable;
  /** Seals customers' credentials. Required if a provider is customer-owned. */
  readonly secrets?: SecretKeys | SecretBox;
  /** Bounds on requests and answers; see `Limits` for each. */
  readonly limits?: Partial<Limits>;
  /** Bounds on waiting, as durations; see `Deadlines` for each. */
  readonly deadlines?: Partial<Record<keyof Deadlines, Duration>>;
  /** Retries of a failed attempt; see `RetryRules`. Default: 2, never a duplicate. */
  readonly retries?: Partial<RetryRules>;
  /**
   * Circuit breakers, concurrency limits and queues, by the name of their gateway. Each process counts separately. Default:
   * none.
   */
  readonly upstreams?: Readonly<Partial<Record<NoInfer<Gateway>, UpstreamConfiguration>>>;
  /**
   * How long records are kept. `responses`: stored responses, from their creation; default `"30d"`. `activity`: Steps and
   * their activity records, from when they opened. `transcripts`: the content of Sessions, from their last Step. By default,
   * activity and transcripts are kept as long as the database exists.
   */
  readonly retention?: Partial<Record<keyof Retention, Duration>>;
  /**
   * How to treat an answer whose client left. By default Tollgate keeps reading answers whose cost isn't known before
   * their end: plain ones for `deadlines.plainAnswer`, and streams of models known to reason for `deadlines.drain`. It
   * aborts all other streams. `abort` aborts every answer, `drain` keeps reading every answer. At most `limits.drains`
   * answers are read this way at once.
   */
  readonly onDisconnect?: "abort" | "drain";
  /**
   * The form of function outputs that Responses clients may send. Default `text`: a string. `parts` also accepts lists of
   * texts and images; the model gets the images in a user message after the function's text.
   */
  readonly toolOutputs?: "text" | "parts";
  /**
   * How Sessions are found. `leadingSystem` is the place of the system and developer messages at the start of a conversation.
   * Default `history`: they are part of it, so a change to one begins a new Session. `apart`: they are instructions of
   * each Step, like the `system` of Messages, for agents that put the time into them. An API key can override it.
   */
  readonly sessions?: { readonly leadingSystem?: LeadingSystem };
  /**
   * The prefix of the headers `X-Service-Data-Sensitivity`, `X-Service-Policy-Decision-Id`, `X-Service-Model` and
   * `X-Service-Token-Count`. Default `X-Service-`.
   */
  readonly headerPrefix?: string;
  /** Identifies the caller before the API key is checked: users already signed in to your app don't need a key. */
  readonly authenticate?: Authenticate;
  /**
   * Seals the evidence leaves into logs with signed checkpoints, in the background. Default: leaves aren't sealed. The gateway
   * is degraded if a leaf waits longer than `alarmAfter` (60 s). Other processes may seal the same logs.
   */
  readonly evidence?: { readonly signer: EvidenceSigner; readonly alarmAfter?: Duration };
  /** Functions that get every event. Errors they throw are ignored. */
  readonly observers?: readonly Observer[];
  /**
   * Returns the W3C `traceparent` header of each attempt, after the event `attempt.started`. Only providers made with
   * `trace: "send"` send it.
   * Default: none.
   */
  readonly traceparent?: TraceParent;
  /** Whether to recover lapsed Steps and remove old records while the gateway is open. Default true. */
  readonly maintenance?: boolean;
  readonly clock?: Clock;
  readonly ids?: IdSource;
  /** How busy the process is. Default: measured. */
  readonly load?: ProcessLoad;
}
