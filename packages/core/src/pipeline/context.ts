import type { RetryRules } from "../attempts/retry.ts";
import type { BudgetCache } from "../budgets/budget-cache.ts";
import type { ThresholdTracker } from "../budgets/thresholds.ts";
import type { CredentialCache } from "../connections/credential-cache.ts";
import type { CredentialSealer } from "../connections/credential-sealer.ts";
import type { GatewayEvent, Observer } from "../contracts/observer.ts";
import type { Policy } from "../contracts/policy.ts";
import type { PriceBook } from "../contracts/price-book.ts";
import type { Provider } from "../contracts/provider.ts";
import type { Store } from "../contracts/store.ts";
import type { Deadlines, Limits } from "../domain/limits.ts";
import type { ModelFacts } from "../domain/model-facts.ts";
import type { ModelId } from "../domain/model-id.ts";
import type { Retention } from "../domain/retention.ts";
import type { Clock } from "../kernel/clock.ts";
import type { IdSource } from "../kernel/ids.ts";
import type { Timers } from "../kernel/timers.ts";
import type { Slots } from "../limits/slots.ts";
import type { ModelLists } from "../routing/model-lists.ts";
import type { Router } from "../routing/route.ts";
import type { DecisionCache } from "./decision-cache.ts";
import type { OpenSteps } from "./open-steps.ts";

/** Everything the governed path stands on; one per gateway. */
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
  /** What configuration, else the price book, says of a model besides its price. */
  readonly modelFacts: (model: ModelId) => ModelFacts;
  readonly dataClasses: readonly string[];
  readonly headerNames: HeaderNames;
  readonly limits: Limits;
  readonly deadlines: Deadlines;
  readonly retention: Retention;
  readonly retry: RetryRules;
  /** Null reads on where only its end says what an answer costs. */
  readonly onDisconnect: "abort" | "drain" | null;
  /** What Responses clients may say that functions returned. */
  readonly toolOutputs: "text" | "parts";
  /** Answers read on after their client left. */
  readonly drains: Slots;
  readonly openSteps: OpenSteps;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly ids: IdSource;
  readonly notify: (event: GatewayEvent) => void;
  /** Whether anybody observes: what only an event needs is computed for nobody else. */
  readonly isObserved: () => boolean;
  /** Adds an observer; what it returns removes it. */
  readonly observe: (observer: Observer) => () => void;
}

/** As they are configured, and as they are sent: in lower case. */
export interface HeaderNames extends SentNames {
  readonly sent: SentNames;
}

interface SentNames {
  readonly dataSensitivity: string;
  readonly policyDecisionId: string;
  readonly model: string;
}
