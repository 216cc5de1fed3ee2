import { defaultRetryRules, type RetryRules } from "./attempts/retry.ts";
import { createBudgetBook } from "./budgets/book.ts";
import { type BudgetConfiguration, readBudget } from "./budgets/read-budget.ts";
import type { GatewayEvent, Observer } from "./contracts/observer.ts";
import type { Policy } from "./contracts/policy.ts";
import type { PriceBook } from "./contracts/price-book.ts";
import type { Provider } from "./contracts/provider.ts";
import type { Store } from "./contracts/store.ts";
import { type Deadlines, defaultDeadlines, defaultLimits, type Limits } from "./domain/limits.ts";
import { parseModelId } from "./domain/model-id.ts";
import { GatewayError } from "./errors/gateway-error.ts";
import { type Clock, systemClock } from "./kernel/clock.ts";
import { type Duration, parseDuration } from "./kernel/duration.ts";
import { type IdSource, randomIds } from "./kernel/ids.ts";
import { createSlots } from "./limits/slots.ts";
import type { Line } from "./pipeline/line.ts";
import { createOpenSteps } from "./pipeline/open-steps.ts";
import { permitAll } from "./policy/decide.ts";
import {
  firstPrice,
  isPriceBook,
  outputCaps,
  type PriceTable,
  priceProblems,
  providerTable,
  tableBook,
} from "./routing/configured-prices.ts";
import { defaultDataClasses } from "./sensitivity/classify.ts";

/** What a gateway is made of. Only `store` and `providers` are required. */
export interface GatewayOptions<Gateway extends string = string> {
  /** Where everything governed is kept: `memoryStore()`, `sqliteStore(…)`. */
  readonly store: Store;
  /** Each provider under the name that is the first part of its model ids. */
  readonly providers: Readonly<Record<Gateway, Provider>>;
  /** Default: everything is permitted, and recorded as such. */
  readonly policy?: Policy<NoInfer<Gateway>>;
  readonly budgets?: readonly BudgetConfiguration[];
  /** Data classes in order, the least sensitive first. Default `D0_PUBLIC`, `D1_INTERNAL`, `D2_CONFIDENTIAL`, `D3_RESTRICTED`. */
  readonly dataClasses?: readonly string[];
  /** Prices under full model ids, or a book such as a catalog. Configured prices come before a book's. */
  readonly prices?: PriceBook | PriceTable;
  /** Bounds on requests and answers; see `Limits` for each. */
  readonly limits?: Partial<Limits>;
  /** Bounds on waiting, as durations; see `Deadlines` for each. */
  readonly deadlines?: Partial<Record<keyof Deadlines, Duration>>;
  /** Retries of a failed attempt; see `RetryRules`. Default: 2, never a duplicate. */
  readonly retries?: Partial<RetryRules>;
  /** Whether an answer is read to its end after its client left, within `deadlines.drain` and 32 at once. Default `abort`. */
  readonly onDisconnect?: "abort" | "drain";
  /** Starts the names of the two headers of section 5.3. Default `X-Service-`. */
  readonly headerPrefix?: string;
  /** Told of every event; what an observer throws is ignored. */
  readonly observers?: readonly Observer[];
  /** Whether leases are renewed and lapsed Steps recovered while the gateway is open. Default true. */
  readonly maintenance?: boolean;
  readonly clock?: Clock;
  readonly ids?: IdSource;
}

const mostDrains = 32;
const headerName = /^[A-Za-z0-9-]{1,64}$/;

/**
 * Reads options into a line.
 * @throws GatewayError `invalid_configuration`, with every problem there is in one message.
 */
export function readOptions(options: GatewayOptions): Line {
  const providers = new Map(Object.entries(options.providers ?? {}));
  const dataClasses = options.dataClasses ?? defaultDataClasses;
  const budgets = (options.budgets ?? []).map(readBudget);
  const deadlines = readDeadlines(options.deadlines ?? {});
  const { prices } = options;
  const custom = prices !== undefined && !isPriceBook(prices) ? prices : {};
  const configured = providerTable(providers);
  const problems = [
    options.store?.contract === 1
      ? []
      : "store must be a store of contract 1, such as memoryStore().",
    providerProblems(providers),
    dataClassProblems(dataClasses, options.policy),
    policyProblems(options.policy, providers),
    budgets.flatMap((read) => read.problems),
    duplicates(budgets.flatMap((read) => read.budget?.id ?? [])).map(
      (id) => `Budget ${id} is defined twice.`,
    ),
    priceProblems({ ...configured, ...custom }),
    deadlines.problems,
    limitProblems(options.limits ?? {}),
    headerName.test(options.headerPrefix ?? "X-Service-")
      ? []
      : "headerPrefix must be letters, digits and hyphens.",
  ].flat();
  if (problems.length > 0) throw new GatewayError("invalid_configuration", problems.join("\n"));

  const clock = options.clock ?? systemClock;
  const ids = options.ids ?? randomIds;
  const prefix = options.headerPrefix ?? "X-Service-";
  return {
    store: options.store,
    providers,
    policy: options.policy ?? permitAll,
    budgets: createBudgetBook(
      budgets.flatMap((read) => read.budget ?? []),
      options.store.budgets,
    ),
    prices: firstPrice([
      tableBook(custom),
      tableBook(configured),
      ...(prices !== undefined && isPriceBook(prices) ? [prices] : []),
    ]),
    maxOutputTokensOf: outputCaps([custom, configured]),
    dataClasses,
    headerNames: {
      dataSensitivity: `${prefix}Data-Sensitivity`,
      policyDecisionId: `${prefix}Policy-Decision-Id`,
    },
    limits: { ...defaultLimits, ...options.limits },
    deadlines: deadlines.deadlines,
    retry: { ...defaultRetryRules, ...options.retries },
    onDisconnect: options.onDisconnect ?? "abort",
    drains: createSlots(mostDrains),
    openSteps: createOpenSteps(ids.uuid()),
    clock,
    ids,
    notify: tell(options.observers ?? []),
  };
}

function providerProblems(providers: ReadonlyMap<string, Provider>): readonly string[] {
  if (providers.size === 0) return ["providers must name at least one gateway."];
  return [...providers].flatMap(([gateway, provider]) => [
    ...(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(gateway)
      ? []
      : [`Gateway ${gateway}: a name is 1 to 64 letters, digits, dots, hyphens and underscores.`]),
    ...(provider?.contract === 1
      ? provider.problems.map((problem) => `Gateway ${gateway}: ${problem}`)
      : [`Gateway ${gateway}: it is not a provider of contract 1.`]),
    ...Object.keys(provider?.models ?? {})
      .filter((model) => parseModelId(`${gateway}/${model}`) === null)
      .map((model) => `Gateway ${gateway}: model ${model} is not <vendor>/<model>.`),
  ]);
}

function dataClassProblems(
  dataClasses: readonly string[],
  policy: Policy | undefined,
): readonly string[] {
  if (dataClasses.length === 0) return ["dataClasses must name at least one class."];
  return [
    ...dataClasses
      .filter((name) => !/^[A-Za-z0-9_.-]{1,64}$/.test(name))
      .map(
        (name) =>
          `Data class ${name}: a name is 1 to 64 letters, digits, dots, hyphens and underscores.`,
      ),
    ...duplicates(dataClasses).map((name) => `Data class ${name} is named twice.`),
    ...(policy?.dataClasses ?? [])
      .filter((name) => !dataClasses.includes(name))
      .map((name) => `The policy names the data class ${name}, which does not exist.`),
  ];
}

function policyProblems(
  policy: Policy | undefined,
  providers: ReadonlyMap<string, Provider>,
): readonly string[] {
  if (policy === undefined) return [];
  if (policy.contract !== 1) return ["policy must be a policy of contract 1: use definePolicy."];
  return policy.gateways
    .filter((gateway) => !providers.has(gateway))
    .map((gateway) => `The policy names the gateway ${gateway}, which is not among the providers.`);
}

function readDeadlines(written: Partial<Record<string, Duration>>): {
  readonly deadlines: Deadlines;
  readonly problems: readonly string[];
} {
  const entries = Object.entries(written).map(
    ([name, duration]) => [name, parseDuration(duration ?? "")] as const,
  );
  const problems = entries
    .filter(
      ([name, milliseconds]) => !Object.hasOwn(defaultDeadlines, name) || milliseconds === null,
    )
    .map(([name]) => `deadlines.${name} is not a duration such as 90_000 or "90s".`);
  return { deadlines: { ...defaultDeadlines, ...Object.fromEntries(entries) }, problems };
}

function limitProblems(written: Partial<Record<string, number>>): readonly string[] {
  return Object.entries(written)
    .filter(
      ([name, value]) =>
        !Object.hasOwn(defaultLimits, name) || !Number.isSafeInteger(value) || (value ?? 0) < 1,
    )
    .map(([name]) => `limits.${name} must be a known limit and a whole number from 1.`);
}

function duplicates(names: readonly string[]): readonly string[] {
  return [...new Set(names.filter((name, at) => names.indexOf(name) !== at))];
}

function tell(observers: readonly Observer[]): (event: GatewayEvent) => void {
  return (event) => {
    for (const observer of observers) {
      try {
        observer(event);
      } catch {
        // An observer's failure is its own.
      }
    }
  };
}
