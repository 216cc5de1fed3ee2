import type { RetryRules } from "./attempts/retry.ts";
import type { RateLimitConfiguration } from "./budgets/rate-limits.ts";
import type { BudgetConfiguration } from "./budgets/read-budget.ts";
import type { SecretKeys } from "./connections/key-ring.ts";
import type { Authenticate } from "./contracts/authenticate.ts";
import type { Observer } from "./contracts/observer.ts";
import type { Policy } from "./contracts/policy.ts";
import type { PriceBook } from "./contracts/price-book.ts";
import type { Provider } from "./contracts/provider.ts";
import type { SecretBox } from "./contracts/secret-box.ts";
import type { Store } from "./contracts/store.ts";
import type { Deadlines, Limits } from "./domain/limits.ts";
import type { Retention } from "./domain/retention.ts";
import type { Clock } from "./kernel/clock.ts";
import type { Duration } from "./kernel/duration.ts";
import type { IdSource } from "./kernel/ids.ts";
import type { PriceTable } from "./routing/configured-prices.ts";

/** What a gateway is made of. Only `store` and `providers` are required. */
export interface GatewayOptions<Gateway extends string = string> {
  /** Where everything governed is kept: `memoryStore()`, `sqliteStore(…)`. */
  readonly store: Store;
  /** Each provider under the name that is the first part of its model ids. */
  readonly providers: Readonly<Record<Gateway, Provider>>;
  /** Default: everything is permitted, and recorded as such. */
  readonly policy?: Policy<NoInfer<Gateway>>;
  readonly budgets?: readonly BudgetConfiguration[];
  /** Smooth limits on requests, tokens and concurrent Steps. A request above one gets 429 `rate_limit_exceeded`. */
  readonly rateLimits?: readonly RateLimitConfiguration[];
  /** Data classes in order, the least sensitive first. Default `D0_PUBLIC`, `D1_INTERNAL`, `D2_CONFIDENTIAL`, `D3_RESTRICTED`. */
  readonly dataClasses?: readonly string[];
  /** Prices under full model ids, or a book such as a catalog. Configured prices come before a book's. */
  readonly prices?: PriceBook | PriceTable;
  /** What customers' credentials are sealed with (section 5.1). Required where a provider is customer-owned. */
  readonly secrets?: SecretKeys | SecretBox;
  /** Bounds on requests and answers; see `Limits` for each. */
  readonly limits?: Partial<Limits>;
  /** Bounds on waiting, as durations; see `Deadlines` for each. */
  readonly deadlines?: Partial<Record<keyof Deadlines, Duration>>;
  /** Retries of a failed attempt; see `RetryRules`. Default: 2, never a duplicate. */
  readonly retries?: Partial<RetryRules>;
  /**
   * How long things are kept. `responses`: stored responses, from their creation; default `"30d"`. `activity`: Steps and
   * with them activity records, from when they opened. `transcripts`: what was said in a Session, from its last Step.
   * The latter two are kept as long as the database exists unless they are given.
   */
  readonly retention?: Partial<Record<keyof Retention, Duration>>;
  /**
   * What to do with an answer whose client left. By default Tollgate keeps reading answers whose cost isn't known before
   * their end: plain ones for `deadlines.plainAnswer`, and streams of models known to reason for `deadlines.drain`. It
   * aborts all other streams. `abort` aborts every answer, `drain` keeps reading every answer. At most `limits.drains`
   * answers are read on at once.
   */
  readonly onDisconnect?: "abort" | "drain";
  /**
   * The form of function outputs that Responses clients may send. Default `text`: a string. `parts` also accepts lists of
   * texts and images; the model gets the images in a user message after the function's text.
   */
  readonly toolOutputs?: "text" | "parts";
  /** Starts the names of the two headers of section 5.3, and of `X-Service-Model`. Default `X-Service-`. */
  readonly headerPrefix?: string;
  /** Identifies the caller before the API key is checked: users who are signed in to the host app need no key. */
  readonly authenticate?: Authenticate;
  /** Told of every event; what an observer throws is ignored. */
  readonly observers?: readonly Observer[];
  /** Whether lapsed Steps are recovered, and what is older than it is to be kept is swept, while the gateway is open. Default true. */
  readonly maintenance?: boolean;
  readonly clock?: Clock;
  readonly ids?: IdSource;
}
