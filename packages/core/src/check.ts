import { toBudget } from "./budgets/read-budget.ts";
import type { Provider } from "./contracts/provider.ts";
import type { Budget } from "./domain/budget.ts";
import { type ModelAliases, parseModelId, splitModelId } from "./domain/model-id.ts";
import { matchesModel, selectsModel } from "./domain/model-pattern.ts";
import type { Obligations } from "./domain/obligations.ts";
import { listed, lowerAscii, matchesGlob, type OneOrMany, selects } from "./domain/pattern.ts";
import { standardTier, tierOf } from "./domain/service-tier.ts";
import type { Problem } from "./errors/gateway-error.ts";
import { pathOf, problemAt } from "./input/read.ts";
import { systemClock } from "./kernel/clock.ts";
import type { GatewayOptions } from "./options.ts";
import { rulesOf } from "./policy/define-policy.ts";
import type { ClassRange, CompleteRule, RuleMatch } from "./policy/rules.ts";
import { configuredPrices, isPriceBook } from "./routing/configured-prices.ts";
import { defaultDataClasses } from "./sensitivity/classify.ts";

/**
 * Returns warnings about options of `createGateway` that are valid but have no effect or make calls fail. In a policy,
 * these are patterns that match no gateway or model, permits that one forbid always overrides, and obligations and
 * fallbacks that no call can meet. Outside it, they are budgets and rate limits that count nothing, and models without a
 * price under a hard budget in dollars. Opens nothing.
 *
 * Every warning is certain. The check doesn't judge anything that depends on callers, on an upstream's own list of models,
 * on several rules together, or on budgets created at run time. It sees the rules of a policy that `definePolicy` made from
 * rules. Pass only options that `createGateway` accepts.
 */
export function warningsOf(options: GatewayOptions): readonly Problem[] {
  const rules = rulesOf(options.policy);
  const configuration: CheckedConfiguration = {
    providers: new Map(
      Object.entries(options.providers).filter(([, { virtual }]) => virtual === undefined),
    ),
    dataClasses: options.dataClasses ?? defaultDataClasses,
    aliases: options.aliases ?? {},
    rules,
  };
  const budgets = (options.budgets ?? []).map(toBudget);
  return [
    ...(rules ?? []).flatMap((rule, at) =>
      ruleWarnings(configuration, rule, `policy.rules[${at}]`),
    ),
    ...budgets.flatMap(({ scope }, at) =>
      selectorWarnings(configuration, scope, `budgets[${at}].scope`),
    ),
    ...(options.rateLimits ?? []).flatMap(({ scope = {} }, at) =>
      selectorWarnings(configuration, scope, `rateLimits[${at}].scope`),
    ),
    ...tableWarnings(configuration, options.prices),
    ...priceWarnings(configuration, options, budgets),
  ];
}

/** The parts of a configuration that rules and budgets are compared within. */
interface CheckedConfiguration {
  readonly providers: ReadonlyMap<string, Provider>;
  readonly dataClasses: readonly string[];
  readonly aliases: ModelAliases;
  /** Null where the policy is a function, or combines others. */
  readonly rules: readonly CompleteRule[] | null;
}

/** A model that its gateway lists; or a pattern, within one gateway, of models that it doesn't list. */
interface ReachableModels {
  readonly id: string;
  readonly isListed: boolean;
}

type Selector = Pick<RuleMatch, "gateway" | "connection" | "listed" | "model">;

function reachOf(configuration: CheckedConfiguration, match: Selector): readonly ReachableModels[] {
  return [...configuration.providers].flatMap(([gateway, provider]) =>
    selects(match.gateway, gateway) && selects(match.connection, provider.connection)
      ? [
          ...(match.listed === false ? [] : listedReach(gateway, provider, match.model)),
          ...(match.listed === true ? [] : openReach(gateway, provider, match.model)),
        ]
      : [],
  );
}

function listedReach(
  gateway: string,
  { models }: Provider,
  patterns: OneOrMany | undefined,
): readonly ReachableModels[] {
  return Object.keys(models)
    .map((model) => ({ id: `${gateway}/${model}`, isListed: true }))
    .filter(({ id }) => selectsModel(patterns, splitModelId(id)));
}

function openReach(
  gateway: string,
  { models, open }: Provider,
  patterns: OneOrMany = "*/*/*",
): readonly ReachableModels[] {
  if (!open) return [];
  // Ids are compared without case: one that the gateway lists never means an unlisted model.
  const own = new Set(Object.keys(models).map((model) => lowerAscii(`${gateway}/${model}`)));
  return listed(patterns)
    .map(splitModelId)
    .filter((pattern) => matchesGlob(pattern.gateway, gateway))
    .map(({ vendor, model }) => ({ id: `${gateway}/${vendor}/${model}`, isListed: false }))
    .filter(({ id }) => !own.has(lowerAscii(id)));
}

/** Whether the wide rule matches every call that the narrow one matches. False if that isn't certain. */
function covers(configuration: CheckedConfiguration, wide: RuleMatch, narrow: RuleMatch): boolean {
  const reach = reachOf(configuration, wide);
  const reaches = ({ id, isListed }: ReachableModels): boolean =>
    reach.some(
      (other) =>
        other.isListed === isListed &&
        (isListed ? other.id === id : matchesModel(other.id, splitModelId(id))),
    );
  const tiers = (match: RuleMatch) => match.serviceTier && listed(match.serviceTier).map(tierOf);
  return (
    Object.keys(wide).every((name) => compared.has(name)) &&
    reachOf(configuration, narrow).every(reaches) &&
    isWithin(wide.organization, narrow.organization) &&
    isWithin(wide.user, narrow.user) &&
    isWithin(wide.key, narrow.key) &&
    isWithin(wide.source, narrow.source) &&
    isWithin(tiers(wide), tiers(narrow)) &&
    isSame(wide.tools, narrow.tools) &&
    isSame(wide.images, narrow.images) &&
    isSame(wide.structuredOutput, narrow.structuredOutput) &&
    isInRange(rangeOf(configuration, wide, 0), rangeOf(configuration, narrow, 0)) &&
    isInRange(rangeOf(configuration, wide.session, -1), rangeOf(configuration, narrow.session, -1))
  );
}

/** The members that `covers` compares. It doesn't judge rules with any other member. */
const compared: ReadonlySet<string> = new Set(
  Object.keys({
    organization: true,
    user: true,
    key: true,
    gateway: true,
    model: true,
    listed: true,
    connection: true,
    source: true,
    from: true,
    upTo: true,
    session: true,
    tools: true,
    images: true,
    structuredOutput: true,
    embeddings: true,
    serviceTier: true,
  } satisfies Record<keyof RuleMatch, true>),
);

function isWithin(wide: OneOrMany | undefined, narrow: OneOrMany | undefined): boolean {
  if (wide === undefined) return true;
  return narrow !== undefined && listed(narrow).every((value) => listed(wide).includes(value));
}

function isSame(wide: boolean | undefined, narrow: boolean | undefined): boolean {
  return wide === undefined || wide === narrow;
}

type Range = readonly [first: number, last: number];

/** The ranks of a range of data classes. A new Session has no class, which ranks below the first. */
function rangeOf(
  { dataClasses }: CheckedConfiguration,
  range: ClassRange = {},
  minRank: number,
): Range {
  const { from, upTo } = range;
  return [
    from === undefined ? minRank : dataClasses.indexOf(from),
    upTo === undefined ? dataClasses.length - 1 : dataClasses.indexOf(upTo),
  ];
}

function isInRange(wide: Range, narrow: Range): boolean {
  return wide[0] <= narrow[0] && narrow[1] <= wide[1];
}

function ruleWarnings(
  configuration: CheckedConfiguration,
  rule: CompleteRule,
  path: string,
): readonly Problem[] {
  const { match, effect } = rule;
  const [first, last] = rangeOf(configuration, match, 0);
  const [firstOfSession, lastOfSession] = rangeOf(configuration, match.session, -1);
  const empty = [
    ...(first > last ? [problemAt(`${path}.match`, "matches no data class")] : []),
    ...(firstOfSession > lastOfSession
      ? [problemAt(`${path}.match.session`, "matches no data class")]
      : []),
    ...selectorWarnings(configuration, match, `${path}.match`, effect === "forbid"),
  ];
  if (effect === "forbid" || empty.length > 0) return empty;
  const forbid = configuration.rules?.find(
    (other) => other.effect === "forbid" && covers(configuration, other.match, match),
  );
  return [
    ...(forbid === undefined
      ? []
      : [
          problemAt(
            path,
            `never permits a call: rule ${forbid.id} forbids every call that it matches`,
          ),
        ]),
    ...Object.entries(obligationWarnings).flatMap(
      ([name, warn]) => warn?.(configuration, rule, `${path}.options.${name}`) ?? [],
    ),
  ];
}

type WarnOfObligation = (
  configuration: CheckedConfiguration,
  rule: CompleteRule,
  path: string,
) => readonly Problem[];

/** Warns of each obligation of a rule that no call can meet; null where calls can meet every value. */
const obligationWarnings: Readonly<Record<keyof Obligations, WarnOfObligation | null>> = {
  connection(configuration, { match, options }, path) {
    const isAnyOwned = reachOf(configuration, match).some(({ id }) =>
      isCustomerOwned(configuration, id),
    );
    const problem = "refuses every call: no gateway that the rule matches is customer-owned";
    return options.connection !== "customer" || isAnyOwned ? [] : [problemAt(path, problem)];
  },
  fallbacks(configuration, rule, path) {
    const earlier = fallsBackFirst(configuration, rule);
    const unused = (rule.options.fallbacks ?? []).flatMap((model, at) =>
      mayBePermitted(configuration, model)
        ? []
        : [problemAt(`${path}[${at}]`, `is never tried: the policy never permits ${model}`)],
    );
    if (earlier === undefined) return unused;
    const problem = `are never used: the fallbacks of rule ${earlier.id} come first`;
    return [problemAt(path, problem), ...unused];
  },
  maxOutputTokens: null,
  transcript: null,
  // Depends on prices and budgets: see `tierWarnings`.
  serviceTier: null,
};

/** The earlier permit whose fallbacks are used instead: of all matching permits, the first with fallbacks counts. */
function fallsBackFirst(
  { rules, ...configuration }: CheckedConfiguration,
  rule: CompleteRule,
): CompleteRule | undefined {
  if (rules === null || rule.options.fallbacks === undefined) return undefined;
  return rules
    .slice(0, rules.indexOf(rule))
    .find(
      ({ effect, match, options }) =>
        effect === "permit" &&
        options.fallbacks !== undefined &&
        covers({ rules, ...configuration }, match, rule.match),
    );
}

function isCustomerOwned({ providers }: CheckedConfiguration, id: string): boolean {
  return providers.get(splitModelId(id).gateway)?.connection === "customer";
}

/** Whether a rule permits some call of a model, and no rule forbids all of them. */
function mayBePermitted(configuration: CheckedConfiguration, model: string): boolean {
  const { rules } = configuration;
  if (rules === null) return true;
  const isOf = ({ effect, match }: CompleteRule): boolean =>
    effect === "permit" &&
    reachOf(configuration, { ...match, model: narrowed(match.model, model) }).length > 0;
  const only: RuleMatch = { model };
  return (
    rules.some(isOf) &&
    !rules.some(({ effect, match }) => effect === "forbid" && covers(configuration, match, only))
  );
}

/** Whether a rule permits some model that a gateway doesn't list, and no rule forbids all of them. */
function isOpenTo(configuration: CheckedConfiguration, gateway: string): boolean {
  const { rules } = configuration;
  if (rules === null) return true;
  const only: RuleMatch = { gateway, listed: false };
  return (
    rules.some(
      ({ effect, match }) =>
        effect === "permit" &&
        reachOf(configuration, match).some(
          ({ id, isListed }) => !isListed && splitModelId(id).gateway === gateway,
        ),
    ) &&
    !rules.some(({ effect, match }) => effect === "forbid" && covers(configuration, match, only))
  );
}

/** One model if the selector matches it, otherwise none. */
function narrowed(patterns: OneOrMany | undefined, model: string): OneOrMany {
  return selectsModel(patterns, splitModelId(model)) ? model : [];
}

/** A forbid may be meant for future models, so its patterns are reported only if they name an unknown gateway or one model. */
function selectorWarnings(
  configuration: CheckedConfiguration,
  match: Selector,
  path: string,
  isForbid = false,
): readonly Problem[] {
  const warnings = listed(match.model ?? []).flatMap((pattern): readonly Problem[] => {
    const { gateway, vendor, model } = splitModelId(pattern);
    const at = `${path}.model`;
    if (![...configuration.providers.keys()].some((name) => matchesGlob(gateway, name)))
      return [problemAt(at, `names an unknown gateway: ${pattern}`)];
    if (isForbid && `${vendor}/${model}`.includes("*")) return [];
    return reachOf(configuration, { ...match, model: pattern }).length > 0
      ? []
      : [problemAt(at, `matches no model of any gateway: ${pattern}`)];
  });
  if (warnings.length > 0 || match.model !== undefined) return warnings;
  return reachOf(configuration, match).length > 0
    ? []
    : [problemAt(path, "matches no model of any gateway")];
}

/** A price for a model that no gateway has is probably meant for another model, which lacks one. */
function tableWarnings(
  configuration: CheckedConfiguration,
  prices: GatewayOptions["prices"],
): readonly Problem[] {
  if (prices === undefined || isPriceBook(prices)) return [];
  const gateways = new Map(
    [...configuration.providers].map(([name, one]) => [lowerAscii(name), one]),
  );
  return Object.keys(prices).flatMap((id): readonly Problem[] => {
    const { gateway, vendor, model } = splitModelId(id);
    const path = pathOf("prices", [id]);
    const provider = gateways.get(lowerAscii(gateway));
    if (provider === undefined) return [problemAt(path, "names an unknown gateway")];
    const name = lowerAscii(`${vendor}/${model}`);
    return provider.open || Object.keys(provider.models).some((own) => lowerAscii(own) === name)
      ? []
      : [problemAt(path, "is a price for a model that its gateway doesn't have")];
  });
}

interface Named {
  readonly id: string;
  readonly path: string;
}

/** Tollgate refuses calls of a model without a price if a hard budget in dollars counts them. */
function priceWarnings(
  configuration: CheckedConfiguration,
  options: GatewayOptions,
  budgets: readonly Budget[],
): readonly Problem[] {
  const dollars = budgets.filter(({ unit, mode }) => unit === "usd" && mode === "hard");
  if (dollars.length === 0) return [];
  const counting = (match: RuleMatch): Budget | undefined =>
    dollars.find(({ scope: { organization: _o, user: _u, key: _k, each: _e, ...calls } }) =>
      covers(configuration, calls, match),
    );
  const isPriced = pricesOf(configuration, options);
  const models = namedModels(configuration).flatMap(({ id, path }): readonly Problem[] => {
    const budget = mayBePermitted(configuration, id) ? counting({ model: id }) : undefined;
    return budget === undefined || isPriced(id)
      ? []
      : [
          problemAt(
            path,
            `has no price, so Tollgate refuses its calls that count against budget ${budget.id}`,
          ),
        ];
  });
  return [
    ...models,
    ...tierWarnings(configuration, isPriced, counting),
    ...openWarnings(configuration, options.prices, counting),
  ];
}

/** A permit may require a tier without a price, such as a misspelt one. With several such permits, another tier could apply. */
function tierWarnings(
  configuration: CheckedConfiguration,
  isPriced: (id: string, tier: string) => boolean,
  counting: (match: RuleMatch) => Budget | undefined,
): readonly Problem[] {
  const obliging = [...(configuration.rules ?? []).entries()].filter(
    ([, { effect, options }]) => effect === "permit" && options.serviceTier !== undefined,
  );
  const [only, ...others] = obliging;
  if (only === undefined || others.length > 0) return [];
  const [at, { match, options }] = only;
  const tier = tierOf(options.serviceTier);
  const reach = reachOf(configuration, match);
  const budget = counting(match);
  const isUnpriced = reach.every(({ id, isListed }) => isListed && !isPriced(id, tier));
  if (reach.length === 0 || budget === undefined || !isUnpriced) return [];
  const path = `policy.rules[${at}].options.serviceTier`;
  return [
    problemAt(
      path,
      `has no price on any model that the rule matches, so Tollgate refuses calls that count against budget ${budget.id}`,
    ),
  ];
}

/** Without a price book, an open gateway may have no price for any model that it doesn't list. */
function openWarnings(
  configuration: CheckedConfiguration,
  prices: GatewayOptions["prices"] = {},
  counting: (match: RuleMatch) => Budget | undefined,
): readonly Problem[] {
  if (isPriceBook(prices)) return [];
  return [...configuration.providers].flatMap(([gateway, { open }]): readonly Problem[] => {
    const start = `${lowerAscii(gateway)}/`;
    if (!open || Object.keys(prices).some((id) => lowerAscii(id).startsWith(start))) return [];
    const budget = isOpenTo(configuration, gateway)
      ? counting({ gateway, listed: false })
      : undefined;
    return budget === undefined
      ? []
      : [
          problemAt(
            pathOf("providers", [gateway]),
            `has no prices for models that it doesn't list, so Tollgate refuses calls to them that count against budget ${budget.id}`,
          ),
        ];
  });
}

/** The models that the configuration names: in a gateway's list, behind an alias, as a fallback, or in a permit. */
function namedModels({ providers, aliases, rules }: CheckedConfiguration): readonly Named[] {
  const own = [...providers].flatMap(([gateway, { models }]) =>
    Object.keys(models).map((model) => ({
      id: `${gateway}/${model}`,
      path: pathOf("providers", [gateway, "models", model]),
    })),
  );
  const ofRules = (rules ?? []).flatMap(({ effect, match, options }, at): readonly Named[] => {
    if (effect === "forbid") return [];
    const path = `policy.rules[${at}]`;
    const ids = listed(match.model ?? []).filter((id) => !id.includes("*"));
    return [
      ...ids.map((id) => ({ id, path: `${path}.match.model` })),
      ...(options.fallbacks ?? []).map((id, nth) => ({
        id,
        path: `${path}.options.fallbacks[${nth}]`,
      })),
    ];
  });
  const aliased = Object.entries(aliases).map(([name, id]) => ({
    id,
    path: pathOf("aliases", [name]),
  }));
  const listedIds = new Set(own.map(({ id }) => lowerAscii(id)));
  const others = [...aliased, ...ofRules].filter(({ id }) => {
    const provider = providers.get(splitModelId(id).gateway);
    return provider?.open === true && !listedIds.has(lowerAscii(id));
  });
  return [...own, ...others];
}

/** Looks up prices. If the host's own price book fails, the model counts as priced. */
function pricesOf(
  { providers }: CheckedConfiguration,
  { prices, clock = systemClock }: GatewayOptions,
) {
  const book = configuredPrices(providers, prices);
  const at = clock.now();
  return (id: string, tier = standardTier): boolean => {
    const model = parseModelId(id);
    try {
      const price = model && book.priceOf(model, at);
      if (model === null || price === null) return model === null;
      return tier === standardTier || price.tiers?.[tier] !== undefined;
    } catch {
      return true;
    }
  };
}
