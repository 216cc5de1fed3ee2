import { defaultRetryRules } from "./attempts/retry.ts";
import { createBudgetCache } from "./budgets/budget-cache.ts";
import { toRateLimit } from "./budgets/rate-limits.ts";
import { toBudget } from "./budgets/read-budget.ts";
import { createThresholdTracker } from "./budgets/thresholds.ts";
import { createCredentialCache } from "./connections/credential-cache.ts";
import { type CredentialSealer, createCredentialSealer } from "./connections/credential-sealer.ts";
import { createKeyRing, noKeys } from "./connections/key-ring.ts";
import type { GatewayEvent, Observer } from "./contracts/observer.ts";
import { defaultDeadlines, defaultLimits } from "./domain/limits.ts";
import { defaultRetention, type Retention } from "./domain/retention.ts";
import type { Problem } from "./errors/gateway-error.ts";
import { invalidInput, problemAt, read } from "./input/read.ts";
import { systemClock } from "./kernel/clock.ts";
import { type Duration, parseDuration } from "./kernel/duration.ts";
import { createRandomIds } from "./kernel/ids.ts";
import { createTimers } from "./kernel/timers.ts";
import { createSlots } from "./limits/slots.ts";
import {
  budgetProblems,
  dataClassProblems,
  policyProblems,
  providerProblems,
  secretProblems,
} from "./option-problems.ts";
import type { GatewayOptions } from "./options.ts";
import { gatewayOptionsSchema } from "./options-schema.ts";
import type { GatewayContext, HeaderNames } from "./pipeline/context.ts";
import { createDecisionCache } from "./pipeline/decision-cache.ts";
import { createOpenSteps } from "./pipeline/open-steps.ts";
import { permitAll } from "./policy/decide.ts";
import {
  firstPrice,
  isPriceBook,
  modelFacts,
  priceProblems,
  providerTable,
  tableBook,
} from "./routing/configured-prices.ts";
import { createModelLists } from "./routing/model-lists.ts";
import { createRouter } from "./routing/route.ts";
import { defaultDataClasses } from "./sensitivity/classify.ts";

/**
 * Reads options into a line.
 * @throws GatewayError `invalid_configuration`, with every problem and its path.
 */
export function readOptions(options: GatewayOptions): GatewayContext {
  const { budgets: declared = [], rateLimits: limited = [], ...checked } = checkShapes(options);
  const providers = new Map(Object.entries(options.providers));
  const dataClasses = checked.dataClasses ?? defaultDataClasses;
  const budgets = declared.map(toBudget);
  const rateLimits = limited.map(toRateLimit);
  const retention = retentionOf(checked.retention ?? {});
  const { prices } = options;
  const custom = prices !== undefined && !isPriceBook(prices) ? prices : {};
  const configured = providerTable(providers);
  const problems = [
    ...providerProblems(providers),
    ...dataClassProblems(dataClasses, options.policy),
    ...policyProblems(options.policy, providers),
    ...budgetProblems(budgets, rateLimits, providers),
    ...priceProblems(providers, custom),
    ...retention.problems,
    ...secretProblems(options.secrets, providers),
  ];
  if (problems.length > 0) throw invalidInput(problems, "invalid_configuration");

  const limits = { ...defaultLimits, ...checked.limits };
  const clock = options.clock ?? systemClock;
  const ids = options.ids ?? createRandomIds();
  const prefix = options.headerPrefix ?? "X-Service-";
  const observers = new Set(options.observers);
  const notify = createNotifier(observers);
  const books = firstPrice([
    tableBook(custom),
    tableBook(configured),
    ...(prices !== undefined && isPriceBook(prices) ? [prices] : []),
  ]);
  const router = createRouter(providers);
  const sealer = readVault(options.secrets, { clock, ids, notify });
  const policy = options.policy ?? permitAll;
  return {
    store: options.store,
    providers,
    router,
    modelLists: createModelLists({ prices: books, router, clock }),
    policy,
    budgets: createBudgetCache({ budgets, rateLimits }, options.store),
    sealer,
    credentials: createCredentialCache(options.store.connections, sealer, clock),
    thresholds: createThresholdTracker(),
    decisionCache: createDecisionCache({ policy, dataClasses }),
    prices: books,
    modelFacts: modelFacts(books, () =>
      notify({ type: "gateway.degraded", at: clock.now(), what: "prices" }),
    ),
    dataClasses,
    headerNames: headerNames(prefix),
    limits,
    deadlines: { ...defaultDeadlines, ...millisecondsOf(checked.deadlines ?? {}) },
    retention: retention.retention,
    retry: { ...defaultRetryRules, ...checked.retries },
    onDisconnect: options.onDisconnect ?? null,
    toolOutputs: options.toolOutputs ?? "text",
    drains: createSlots({ max: limits.drains, maxPerOwner: limits.drainsPerKey }),
    openSteps: createOpenSteps(ids.uuid()),
    clock,
    timers: createTimers(clock),
    ids,
    notify,
    isObserved: () => observers.size > 0,
    observe(observer) {
      observers.add(observer);
      return () => void observers.delete(observer);
    },
  };
}

/** What a factory made stays itself: a store that is copied is another store. */
const instances = [
  "store",
  "providers",
  "policy",
  "prices",
  "secrets",
  "authenticate",
  "clock",
  "ids",
];

function checkShapes(options: GatewayOptions) {
  return read(gatewayOptionsSchema, options, {
    code: "invalid_configuration",
    noun: "option",
    passThrough: instances,
  });
}

function millisecondsOf(written: Partial<Record<string, Duration>>): Record<string, number> {
  return Object.fromEntries(
    Object.entries(written).map(([name, given]) => [name, parseDuration(given ?? "") ?? 0]),
  );
}

/** Activity kept for no time at all would be gone before it is read. */
function retentionOf(written: Partial<Record<string, Duration>>): {
  readonly retention: Retention;
  readonly problems: readonly Problem[];
} {
  const kept = millisecondsOf(written);
  return {
    retention: { ...defaultRetention, ...kept },
    problems: Object.entries(kept)
      .filter(([name, milliseconds]) => milliseconds === 0 && name !== "responses")
      .map(([name]) => problemAt(`retention.${name}`, "must be longer than 0")),
  };
}

function readVault(
  secrets: GatewayOptions["secrets"] = noKeys,
  parts: Omit<Parameters<typeof createCredentialSealer>[0], "box">,
): CredentialSealer {
  return createCredentialSealer({
    ...parts,
    box: "wrap" in secrets ? secrets : createKeyRing(secrets, parts.ids),
  });
}

function headerNames(prefix: string): HeaderNames {
  const dataSensitivity = `${prefix}Data-Sensitivity`;
  const policyDecisionId = `${prefix}Policy-Decision-Id`;
  const model = `${prefix}Model`;
  return {
    dataSensitivity,
    policyDecisionId,
    model,
    sent: {
      dataSensitivity: dataSensitivity.toLowerCase(),
      policyDecisionId: policyDecisionId.toLowerCase(),
      model: model.toLowerCase(),
    },
  };
}

function createNotifier(observers: Iterable<Observer>): (event: GatewayEvent) => void {
  return (event) => {
    for (const observer of observers) {
      try {
        const returned: unknown = observer(event);
        if (returned instanceof Promise) returned.catch(() => {});
      } catch {
        // An observer's failure is its own.
      }
    }
  };
}
