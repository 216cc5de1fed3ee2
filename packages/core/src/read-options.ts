import { defaultRetryRules } from "./attempts/retry.ts";
import { createBudgetCache } from "./budgets/budget-cache.ts";
import { toRateLimit } from "./budgets/rate-limits.ts";
import { toBudget } from "./budgets/read-budget.ts";
import { createThresholdTracker } from "./budgets/thresholds.ts";
import { createCredentialCache } from "./connections/credential-cache.ts";
import { type CredentialSealer, createCredentialSealer } from "./connections/credential-sealer.ts";
import { createKeyRing, noKeys, secretKeyProblems } from "./connections/key-ring.ts";
import type { Policy } from "./contracts/policy.ts";
import type { Provider } from "./contracts/provider.ts";
import type { Budget } from "./domain/budget.ts";
import { defaultDeadlines, defaultLimits, type Limits } from "./domain/limits.ts";
import { splitModelId } from "./domain/model-id.ts";
import { listed, lowerAscii } from "./domain/pattern.ts";
import type { RateLimit } from "./domain/rate-limit.ts";
import { defaultRetention, type Retention } from "./domain/retention.ts";
import type { Problem } from "./errors/gateway-error.ts";
import { createSequencer, type Sequencer } from "./evidence/sequencer.ts";
import { copiedBytes } from "./idempotency/claim.ts";
import { invalidInput, problemAt, read, tryRead } from "./input/read.ts";
import { type Clock, systemClock } from "./kernel/clock.ts";
import { type Duration, parseDuration } from "./kernel/duration.ts";
import { createAfterReads } from "./kernel/event-loop.ts";
import { createRandomIds } from "./kernel/ids.ts";
import { createProcessLoad } from "./kernel/process-load.ts";
import { synchronous } from "./kernel/synchronous.ts";
import { createTimers } from "./kernel/timers.ts";
import { Admission, type AdmissionLimits } from "./limits/admission.ts";
import { createPaces } from "./limits/paces.ts";
import { createSlots } from "./limits/slots.ts";
import type { GatewayOptions } from "./options.ts";
import { gatewayOptionsSchema } from "./options-schema.ts";
import { createLatencies } from "./pipeline/choose-target.ts";
import type { GatewayContext, HeaderNames } from "./pipeline/context.ts";
import { createDecisionCache } from "./pipeline/decision-cache.ts";
import { createOpenSteps } from "./pipeline/open-steps.ts";
import { createUpstreams } from "./pipeline/upstreams.ts";
import { permitAll } from "./policy/decide.ts";
import {
  configuredPrices,
  isPriceBook,
  modelFacts,
  priceProblems,
} from "./routing/configured-prices.ts";
import { createModelLists } from "./routing/model-lists.ts";
import { billingSchema } from "./routing/model-schema.ts";
import { aliasProblems, createRouter, type Router } from "./routing/route.ts";
import { namingProblems } from "./routing/upstream-names.ts";
import { virtualProblems } from "./routing/virtual.ts";
import { defaultDataClasses } from "./sensitivity/classify.ts";

/**
 * Checks the options and creates everything that a gateway needs.
 * @throws GatewayError `invalid_configuration`, with every problem and its path.
 */
export function readOptions(options: GatewayOptions): GatewayContext {
  const { budgets: declared = [], rateLimits: limited = [], ...checked } = checkShapes(options);
  const { providers, virtuals } = splitProviders(options.providers);
  const dataClasses = Object.freeze(checked.dataClasses ?? defaultDataClasses);
  const budgets = declared.map(toBudget);
  const rateLimits = limited.map(toRateLimit);
  const retention = retentionOf(checked.retention ?? {});
  const { prices, policy = permitAll } = options;
  const custom = prices !== undefined && !isPriceBook(prices) ? prices : {};
  const router = createRouter(providers, virtuals, checked.aliases ?? {});
  const names = nameProblems({ providers, virtuals });
  const problems = [
    ...providerProblems(options.providers),
    ...virtualProblems(virtuals, (model) => router.find(model) !== null),
    ...aliasProblems(checked.aliases ?? {}, router),
    ...dataClassProblems(dataClasses, options.policy),
    ...policyProblems(options.policy, { router, ...names }),
    ...budgetProblems(budgets, rateLimits, names),
    ...priceProblems(providers, custom),
    ...upstreamProblems(checked.upstreams ?? {}, names.unknown),
    ...retention.problems,
    ...secretProblems(options.secrets, providers),
  ];
  if (problems.length > 0) throw invalidInput(problems, "invalid_configuration");

  const bounds = boundsOf(checked);
  const { limits, deadlines } = bounds;
  const { clock = systemClock, ids = createRandomIds() } = options;
  const observing = createObserving(options);
  const { notify } = observing;
  const books = configuredPrices(providers, prices);
  const sealer = readVault(options.secrets, { clock, ids, notify });
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
    headerNames: headerNames(options.headerPrefix ?? "X-Service-"),
    ...bounds,
    retention: retention.retention,
    onDisconnect: options.onDisconnect ?? null,
    toolOutputs: options.toolOutputs ?? "text",
    leadingSystem: options.sessions?.leadingSystem ?? "history",
    latencies: createLatencies(router.virtualModels),
    upstreams: createUpstreams(checked.upstreams ?? {}, clock, notify),
    ...createKeyLimits(limits, clock),
    ...createAdmission(options.load, { ...limits, turn: deadlines.turn }, clock),
    sequencer: readSequencer(options, { clock, notify }),
    openSteps: createOpenSteps(ids.uuid()),
    clock,
    timers: createTimers(clock),
    ids,
    ...observing,
  };
}

/** How often an API key may do what no rate limit counts, because it opens no Step. */
const unheld = { burst: 300, interval: 200, maxOwners: 10_000 };

/** The limits that each API key has in this process. */
function createKeyLimits(
  { drains, drainsPerKey }: Limits,
  clock: Clock,
): Pick<GatewayContext, "replays" | "counts" | "drains" | "copies"> {
  return {
    replays: createPaces(clock, unheld),
    counts: createPaces(clock, unheld),
    drains: createSlots({ max: drains, maxPerOwner: drainsPerKey }),
    copies: createSlots(copiedBytes),
  };
}

/** Options that aren't data: a copy of a store would be another store. */
const instances = [
  "store",
  "providers",
  "policy",
  "prices",
  "secrets",
  "evidence",
  "authenticate",
  "clock",
  "ids",
  "load",
];

function checkShapes(options: GatewayOptions) {
  return read(gatewayOptionsSchema, options, {
    code: "invalid_configuration",
    noun: "option",
    passThrough: instances,
  });
}

function boundsOf({
  limits,
  deadlines = {},
  retries,
}: Pick<GatewayOptions, "limits" | "deadlines" | "retries">) {
  return {
    retry: { ...defaultRetryRules, ...retries },
    limits: { ...defaultLimits, ...limits },
    deadlines: { ...defaultDeadlines, ...millisecondsOf(deadlines) },
  };
}

/** Which requests this process takes, and when their bodies and answers are taken. */
function createAdmission(
  load: GatewayOptions["load"],
  limits: AdmissionLimits,
  clock: Clock,
): Pick<GatewayContext, "admission" | "afterReads"> {
  const admission = new Admission({ limits, clock, load: load ?? createProcessLoad() });
  return { admission, afterReads: createAfterReads(() => admission.admitted <= 1) };
}

function millisecondsOf(written: Partial<Record<string, Duration>>): Record<string, number> {
  return Object.fromEntries(
    Object.entries(written).map(([name, given]) => [name, parseDuration(given ?? "") ?? 0]),
  );
}

/** Activity that is kept for no time would be gone before anyone reads it. */
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

/** How long a leaf may wait to be sealed, in milliseconds. */
const defaultAlarm = 60_000;

function readSequencer(
  { store, evidence }: Pick<GatewayOptions, "store" | "evidence">,
  parts: Pick<Parameters<typeof createSequencer>[0], "clock" | "notify">,
): Sequencer | null {
  if (evidence === undefined) return null;
  const { signer, alarmAfter } = evidence;
  return createSequencer({
    ...parts,
    checkpoints: store.checkpoints,
    signer,
    alarmAfter: alarmAfter === undefined ? defaultAlarm : (parseDuration(alarmAfter) ?? 0),
  });
}

function headerNames(prefix: string): HeaderNames {
  const lower = prefix.toLowerCase();
  return {
    dataSensitivity: `${prefix}Data-Sensitivity`,
    sent: {
      dataSensitivity: `${lower}data-sensitivity`,
      policyDecisionId: `${lower}policy-decision-id`,
      model: `${lower}model`,
      tokenCount: `${lower}token-count`,
    },
  };
}

function createObserving({
  observers: initial = [],
  traceparent,
}: Pick<GatewayOptions, "observers" | "traceparent">): Pick<
  GatewayContext,
  "notify" | "isObserved" | "observe" | "traceparent"
> {
  const observers = new Set(initial);
  return {
    traceparent: traceparent ?? null,
    notify(event) {
      for (const observer of observers) {
        try {
          synchronous<unknown>(observer(event));
        } catch {
          // A failing observer must not fail a request.
        }
      }
    },
    isObserved: () => observers.size > 0,
    observe(observer) {
      observers.add(observer);
      return () => void observers.delete(observer);
    },
  };
}

/** The gateways that have a provider, and the virtual ones. */
function splitProviders(all: GatewayOptions["providers"]) {
  const entries = Object.entries(all);
  const isVirtual = ([, { virtual }]: (typeof entries)[number]): boolean => virtual !== undefined;
  return {
    providers: new Map(entries.filter((entry) => !isVirtual(entry))),
    virtuals: new Map(entries.filter(isVirtual)),
  };
}

/** The problems of each provider, under its gateway's name. */
function providerProblems(providers: GatewayOptions["providers"]): readonly Problem[] {
  return Object.entries(providers).flatMap(([gateway, provider]) =>
    [
      ...(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(gateway)
        ? []
        : ["its name must be 1 to 64 letters, digits, dots, hyphens and underscores"]),
      ...sameInAnyCase(Object.keys(providers), gateway),
      ...provider.problems,
      ...(provider.virtual === undefined ? namingProblems(provider) : []),
      ...billingProblems(provider),
    ].map((problem) => ({
      path: `providers.${gateway}`,
      message: `Gateway ${gateway}: ${problem}${problem.endsWith(".") ? "" : "."}`,
    })),
  );
}

/** A provider that reports problems includes those of its billing. */
function billingProblems({ billing, problems }: Provider): readonly string[] {
  if (problems.length > 0) return [];
  return tryRead(billingSchema, billing, { noun: "member", path: "billing" }).problems.map(
    ({ message }) => message,
  );
}

function dataClassProblems(
  dataClasses: readonly string[],
  policy: Policy | undefined,
): readonly Problem[] {
  return [
    ...duplicates(dataClasses).map((name) => problemAt("dataClasses", `lists ${name} twice`)),
    ...(policy?.dataClasses ?? [])
      .filter((name) => !dataClasses.includes(name))
      .map((name) => problemAt("policy", `names an unknown data class, ${name}`)),
  ];
}

/** The problem of a name that isn't a gateway's; null for none. */
type UnknownGateway = (gateway: string) => string | null;

interface NameProblems {
  readonly unknown: UnknownGateway;
  readonly selected: (pattern: string) => string | null;
}

function nameProblems(all: ReturnType<typeof splitProviders>): NameProblems {
  return {
    unknown: (gateway) => unknownGateway(gateway, all),
    selected: (pattern) => virtualPattern(pattern, all.virtuals),
  };
}

/** Calls reach the targets of a virtual gateway under their own ids, so a rule or a limit on its name would do nothing. */
function unknownGateway(
  gateway: string,
  { providers, virtuals }: ReturnType<typeof splitProviders>,
): string | null {
  if (providers.has(gateway)) return null;
  return virtuals.has(gateway)
    ? `names a virtual gateway, ${gateway}: name the gateways of its targets instead`
    : `names an unknown gateway, ${gateway}`;
}

/** The problem of a model pattern that names a virtual gateway, in any case; null for none. */
function virtualPattern(pattern: string, virtuals: ReadonlyMap<string, Provider>): string | null {
  if (virtuals.size === 0) return null;
  const gateway = lowerAscii(splitModelId(pattern).gateway);
  return [...virtuals.keys()].some((name) => lowerAscii(name) === gateway)
    ? `selects ${pattern}, which is virtual: select its targets instead`
    : null;
}

function policyProblems(
  policy: Policy | undefined,
  { router, unknown, selected }: NameProblems & { readonly router: Router },
): readonly Problem[] {
  if (policy === undefined) return [];
  return [
    ...policy.gateways.flatMap((gateway) => problemsAt("policy", unknown(gateway))),
    ...(policy.models ?? []).flatMap((pattern) => problemsAt("policy", selected(pattern))),
    ...policy.fallbacks
      .filter((model) => router.find(model) === null)
      .map((model) =>
        problemAt(
          "policy",
          router.virtual(model) === null
            ? `falls back to ${model}, which no gateway has`
            : `falls back to ${model}, which is virtual: name its targets instead`,
        ),
      ),
  ];
}

function problemsAt(path: string, problem: string | null): readonly Problem[] {
  return problem === null ? [] : [problemAt(path, problem)];
}

/** A customer-owned gateway needs `secrets`. They must be valid even if no gateway needs them. */
function secretProblems(
  secrets: GatewayOptions["secrets"],
  providers: ReadonlyMap<string, Provider>,
): readonly Problem[] {
  if (secrets === undefined)
    return [...providers]
      .filter(([, provider]) => provider.connection === "customer")
      .map(([gateway]) =>
        problemAt("secrets", `is required: gateway ${gateway} is customer-owned`),
      );
  if (!("wrap" in secrets))
    return secretKeyProblems(secrets).map((message) => ({ path: "secrets", message }));
  const { contract, current, wrap, unwrap } = secrets;
  const isBox = contract === 1 && [wrap, unwrap].every((member) => typeof member === "function");
  return isBox && typeof current === "string" && current !== ""
    ? []
    : [problemAt("secrets", "must be a SecretBox of contract 1 with a `current` key")];
}

/** A budget or rate limit that names an unknown gateway would never count anything. Both share their ids. */
function budgetProblems(
  budgets: readonly Budget[],
  rateLimits: readonly RateLimit[],
  { unknown, selected }: NameProblems,
): readonly Problem[] {
  const all = [
    ...budgets.map(({ id, scope }, at) => ({ id, scope, path: `budgets[${at}]` })),
    ...rateLimits.map(({ id, scope }, at) => ({ id, scope, path: `rateLimits[${at}]` })),
  ];
  const ids = all.map(({ id }) => id);
  return all.flatMap(({ id, scope, path }, at) => [
    ...(ids.indexOf(id) === at
      ? []
      : [problemAt(`${path}.id`, `is the id of an earlier budget or rate limit, ${id}`)]),
    ...listed(scope.gateway ?? []).flatMap((gateway) =>
      problemsAt(`${path}.scope.gateway`, unknown(gateway)),
    ),
    ...listed(scope.model ?? []).flatMap((pattern) =>
      problemsAt(`${path}.scope.model`, selected(pattern)),
    ),
  ]);
}

/** Limits under a name that isn't a gateway's would limit nothing. */
function upstreamProblems(
  upstreams: Readonly<Record<string, unknown>>,
  unknown: UnknownGateway,
): readonly Problem[] {
  return Object.keys(upstreams).flatMap((gateway) => problemsAt("upstreams", unknown(gateway)));
}

/** Patterns ignore case, so a rule for one of them would apply to both. */
function sameInAnyCase(gateways: readonly string[], gateway: string): readonly string[] {
  return gateways
    .slice(0, gateways.indexOf(gateway))
    .filter((other) => lowerAscii(other) === lowerAscii(gateway))
    .map((other) => `its name differs from ${other} only in case`);
}

function duplicates(names: readonly string[]): readonly string[] {
  return [...new Set(names.filter((name, at) => names.indexOf(name) !== at))];
}
