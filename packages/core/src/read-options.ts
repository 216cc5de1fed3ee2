import { defaultRetryRules } from "./attempts/retry.ts";
import { createBudgetBook } from "./budgets/book.ts";
import { toBudget } from "./budgets/read-budget.ts";
import { budgetSchema } from "./budgets/schema.ts";
import { createBudgetWatch } from "./budgets/watch.ts";
import { createCredentialBook } from "./connections/credential-book.ts";
import { createKeyRing, noKeys } from "./connections/key-ring.ts";
import { createVault, type Vault } from "./connections/vault.ts";
import type { GatewayEvent, Observer } from "./contracts/observer.ts";
import { type Deadlines, defaultDeadlines, defaultLimits } from "./domain/limits.ts";
import { GatewayError } from "./errors/gateway-error.ts";
import { tryRead } from "./input/read.ts";
import { systemClock } from "./kernel/clock.ts";
import { type Duration, parseDuration } from "./kernel/duration.ts";
import { createRandomIds } from "./kernel/ids.ts";
import { createSlots } from "./limits/slots.ts";
import {
  budgetProblems,
  dataClassProblems,
  limitProblems,
  policyProblems,
  providerProblems,
  retryProblems,
  secretProblems,
} from "./option-problems.ts";
import { listProblems, nameProblems } from "./option-shapes.ts";
import type { GatewayOptions } from "./options.ts";
import type { Line } from "./pipeline/line.ts";
import { createOpenSteps } from "./pipeline/open-steps.ts";
import { permitAll } from "./policy/decide.ts";
import { readRetention } from "./read-retention.ts";
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

const headerPrefix = /^[A-Za-z0-9-]{1,64}$/;

/**
 * Reads options into a line.
 * @throws GatewayError `invalid_configuration`, with every problem there is in one message.
 */
export function readOptions(options: GatewayOptions): Line {
  refuse(listProblems(options));
  const providers = new Map(Object.entries(options.providers ?? {}));
  const dataClasses = options.dataClasses ?? defaultDataClasses;
  const budgets = (options.budgets ?? []).map((written, at) => {
    const { value, problems } = tryRead(budgetSchema, written, { path: `budgets[${at}]` });
    return { budget: value && toBudget(value), problems: problems.map(({ message }) => message) };
  });
  const deadlines = readDeadlines(options.deadlines ?? {});
  const retention = readRetention(options.retention ?? {});
  const { prices } = options;
  const custom = prices !== undefined && !isPriceBook(prices) ? prices : {};
  const configured = providerTable(providers);
  const problems = [
    nameProblems(options),
    options.store?.contract === 1
      ? []
      : "store must be a store of contract 1, such as memoryStore().",
    providerProblems(providers),
    dataClassProblems(dataClasses, options.policy),
    policyProblems(options.policy, providers),
    budgets.flatMap((read) => read.problems),
    budgetProblems(
      budgets.flatMap((read) => read.budget ?? []),
      providers,
    ),
    priceProblems({ ...configured, ...custom }),
    deadlines.problems,
    retention.problems,
    secretProblems(options.secrets, providers),
    limitProblems(options.limits ?? {}),
    retryProblems({ ...options.retries }),
    ["abort", "drain", undefined].includes(options.onDisconnect)
      ? []
      : "onDisconnect must be abort or drain.",
    ["text", "parts", undefined].includes(options.toolOutputs)
      ? []
      : "toolOutputs must be text or parts.",
    ["function", "undefined"].includes(typeof options.authenticate)
      ? []
      : "authenticate must be a function.",
    headerPrefix.test(options.headerPrefix ?? "X-Service-")
      ? []
      : "headerPrefix must be letters, digits and hyphens.",
  ].flat();
  refuse(problems);

  const limits = { ...defaultLimits, ...options.limits };
  const clock = options.clock ?? systemClock;
  const ids = options.ids ?? createRandomIds();
  const prefix = options.headerPrefix ?? "X-Service-";
  const notify = tell(options.observers ?? []);
  const books = firstPrice([
    tableBook(custom),
    tableBook(configured),
    ...(prices !== undefined && isPriceBook(prices) ? [prices] : []),
  ]);
  const router = createRouter(providers);
  const vault = readVault(options.secrets, { clock, ids, notify });
  return {
    store: options.store,
    providers,
    router,
    modelLists: createModelLists({ prices: books, router, clock }),
    policy: options.policy ?? permitAll,
    budgets: createBudgetBook(
      budgets.flatMap((read) => read.budget ?? []),
      options.store.budgets,
    ),
    vault,
    credentials: createCredentialBook(options.store.connections, vault, clock),
    budgetWatch: createBudgetWatch(),
    prices: books,
    modelFacts: modelFacts(books, () =>
      notify({ type: "gateway.degraded", at: clock.now(), what: "prices" }),
    ),
    dataClasses,
    headerNames: {
      dataSensitivity: `${prefix}Data-Sensitivity`,
      policyDecisionId: `${prefix}Policy-Decision-Id`,
    },
    limits,
    deadlines: deadlines.deadlines,
    retention: retention.retention,
    retry: { ...defaultRetryRules, ...options.retries },
    onDisconnect: options.onDisconnect ?? null,
    toolOutputs: options.toolOutputs ?? "text",
    drains: createSlots({ most: limits.readOn, mostPerOwner: limits.readOnPerKey }),
    openSteps: createOpenSteps(ids.uuid()),
    clock,
    ids,
    notify,
  };
}

function refuse(problems: readonly string[]): void {
  if (problems.length > 0) throw new GatewayError("invalid_configuration", problems.join("\n"));
}

function readVault(
  secrets: GatewayOptions["secrets"] = noKeys,
  parts: Omit<Parameters<typeof createVault>[0], "box">,
): Vault {
  return createVault({
    ...parts,
    box: "wrap" in secrets ? secrets : createKeyRing(secrets, parts.ids),
  });
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
