import type { RetryRules } from "../attempts/retry.ts";
import type { BudgetCache } from "../budgets/budget-cache.ts";
import type { ThresholdTracker } from "../budgets/thresholds.ts";
import type { CredentialCache } from "../connections/credential-cache.ts";
import type { CredentialSealer } from "../connections/credential-sealer.ts";
import type { GatewayEvent, Observer, TraceParent } from "../contracts/observer.ts";
import type { Policy } from "../contracts/policy.ts";
import type { PriceBook } from "../contracts/price-book.ts";
import type { Provider } from "../contracts/provider.ts";
import type { Store } from "../contracts/store.ts";
import type { LeadingSystem } from "../domain/api-key.ts";
import type { Deadlines, Limits } from "../domain/limits.ts";
import type { ModelFacts } from "../domain/model-facts.ts";
import type { ModelId } from "../domain/model-id.ts";
import type { Retention } from "../domain/retention.ts";
import type { Sequencer } from "../evidence/sequencer.ts";
import type { Clock } from "../kernel/clock.ts";
import type { AfterReads } from "../kernel/event-loop.ts";
import type { IdSource } from "../kernel/ids.ts";
import type { Timers } from "../kernel/timers.ts";
import type { Admission } from "../limits/admission.ts";
import type { Paces } from "../limits/paces.ts";
import type { Slots } from "../limits/slots.ts";
import type { ModelLists } from "../routing/model-lists.ts";
import type { Router } from "../routing/route.ts";
import type { Latencies } from "./choose-target.ts";
import type { DecisionCache } from "./decision-cache.ts";
import type { OpenSteps } from "./open-steps.ts";
import type { Upstream } from "./upstreams.ts";

/** The dependencies and configuration that every governed call uses; one per gateway. */
export interface GatewayContext {
  readonly store: Store;
  readonly providers: ReadonlyMap<string, Provider>;
  readonly router: Router;
  readonly modelLists: ModelLists;
  readonly policy: Policy;
  readonly budgets: BudgetCache;
  readonly sealer: CredentialSealer;
  readonly credentials: CredentialCache;
  readonly thresholds: ThresholdTracker;
  readonly decisionCache: DecisionCache;
  readonly prices: PriceBook;
  /** Facts about a model other than its price, from the configuration, otherwise from the price book. */
  readonly modelFacts: (model: ModelId) => ModelFacts;
  readonly dataClasses: readonly string[];
  readonly headerNames: HeaderNames;
  readonly limits: Limits;
  readonly deadlines: Deadlines;
  readonly retention: Retention;
  readonly retry: RetryRules;
  /** If null, only answers whose cost isn't known before their end are read to it after the client leaves. */
  readonly onDisconnect: "abort" | "drain" | null;
  /** The form of function outputs that Responses clients may send. */
  readonly toolOutputs: "text" | "parts";
  /** The place of leading system messages for keys that don't set it. */
  readonly leadingSystem: LeadingSystem;
  /** Limits how many answers are read to their end after their clients left. */
  readonly drains: Slots;
  /** Limits the bytes of running streams that are copied for repeats. */
  readonly copies: Slots;
  /** The times to first output of models that are chosen by latency; null if none is. */
  readonly latencies: Latencies | null;
  /** The upstreams with limits or a breaker, by gateway; null if none has any. */
  readonly upstreams: ReadonlyMap<string, Upstream> | null;
  /** Decides which requests this process takes, and when they open their Steps. */
  readonly admission: Admission;
  /** Limits how many kept answers each API key gets by its idempotency keys. */
  readonly replays: Paces;
  /** Limits the token counts of each key, which open no Step. */
  readonly counts: Paces;
  /** Seals the evidence; null without `evidence`. */
  readonly sequencer: Sequencer | null;
  readonly openSteps: OpenSteps;
  /** Continues requests whose bodies, or whose answers, arrived together. */
  readonly afterReads: AfterReads;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly ids: IdSource;
  readonly notify: (event: GatewayEvent) => void;
  /** Whether there is any observer. If not, nothing is computed only for events. */
  readonly isObserved: () => boolean;
  /** Null if the host traces no attempts. */
  readonly traceparent: TraceParent | null;
  /** Adds an observer. The returned function removes it. */
  readonly observe: (observer: Observer) => () => void;
}

/** The configured names, and the same names in lower case, as they are sent. */
export interface HeaderNames {
  /** The request header, for messages. */
  readonly dataSensitivity: string;
  /** All names in lower case. */
  readonly sent: {
    readonly dataSensitivity: string;
    readonly policyDecisionId: string;
    readonly model: string;
    /** Whether a count of tokens is the provider's or an estimate. */
    readonly tokenCount: string;
  };
}
