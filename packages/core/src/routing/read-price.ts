import type {
  Billing,
  ConfiguredPrice,
  ConfiguredRates,
  ModelConfiguration,
} from "../contracts/provider.ts";
import type { LongPromptPrice, Price, Rates, TierPrice } from "../domain/price.ts";
import { isOwnTier, isTierName } from "../domain/service-tier.ts";
import { parseUsd } from "../kernel/nano-usd.ts";

/** A configured model as a price in nanodollars; null without the prices of input and output. */
export function readPrice(model: ModelConfiguration): Price | null {
  const standard = readTier(model);
  if (standard === null) return null;
  const tiers = Object.entries(model.tiers ?? {}).flatMap(([name, tier]) => {
    const read = readTier(tier);
    return read === null ? [] : [[name, read] as const];
  });
  return {
    ...standard,
    ...(tiers.length === 0 ? {} : { tiers: Object.fromEntries(tiers) }),
    source: "custom",
  };
}

function readTier({ request, longPrompt = [], ...written }: ConfiguredPrice): TierPrice | null {
  const rates = readRates(written);
  if (rates === null) return null;
  const long = longPrompt.flatMap(({ above, ...step }): LongPromptPrice[] => {
    const read = readRates(step);
    return read === null ? [] : [{ above, ...read }];
  });
  return {
    ...rates,
    ...(request === undefined ? {} : { request: parseUsd(request) ?? 0 }),
    ...(long.length === 0 ? {} : { longPrompt: long }),
  };
}

function readRates(written: ConfiguredRates): Rates | null {
  const { input, output, ...others } = writtenRates(written);
  if (input === undefined || output === undefined) return null;
  return { input, output, ...others };
}

/** The rates that are written, in nanodollars. */
function writtenRates(written: ConfiguredRates): Partial<Rates> {
  const { cacheWrite, audio, image } = written;
  const write = typeof cacheWrite === "object" ? cacheWrite : { "5m": cacheWrite, "1h": undefined };
  const amounts = {
    input: written.input,
    output: written.output,
    cachedInput: written.cachedInput,
    cacheWrite5m: write["5m"],
    cacheWrite1h: write["1h"],
    reasoning: written.reasoning,
    audioInput: audio?.input,
    audioOutput: audio?.output,
    imageInput: image?.input,
    imageOutput: image?.output,
  };
  return Object.fromEntries(
    Object.entries(amounts).flatMap(([name, amount]) => {
      const rate = amount === undefined ? null : parseUsd(amount);
      return rate === null ? [] : [[name, rate]];
    }),
  );
}

/** What is wrong with what is configured of a model, one clause each, beginning with the member's name. */
export function modelFaults(model: unknown): readonly string[] {
  if (!isObject(model)) return ["a price is { input, output }, in US dollars per million tokens"];
  const { tiers = {}, maxOutputTokens, reasons } = model;
  const isPriced = ["tiers", ...priceMembers].some((name) => model[name] !== undefined);
  return [
    ...priceFaults(model, ""),
    ...(isPriced ? pairFaults(model, "a price") : []),
    ...tierFaults(tiers),
    ...(maxOutputTokens === undefined || (isCount(maxOutputTokens) && maxOutputTokens > 0)
      ? []
      : ["maxOutputTokens must be a whole number from 1"]),
    ...(reasons === undefined || typeof reasons === "boolean"
      ? []
      : ["reasons must be true or false"]),
  ];
}

function tierFaults(tiers: unknown): readonly string[] {
  if (!isObject(tiers)) return ["tiers must be prices by the names of service tiers"];
  return Object.entries(tiers).flatMap(([name, tier]) => {
    const path = `tiers.${name}`;
    if (!isOwnTier(name))
      return [`${path} is not a tier of its own: the standard tier's prices are the model's`];
    if (!isObject(tier)) return [`${path} must be { input, output }`];
    return [
      ...unknownFaults(tier, path, priceMembers),
      ...pairFaults(tier, path),
      ...priceFaults(tier, `${path}.`),
    ];
  });
}

const rateMembers = ["input", "output", "cachedInput", "cacheWrite", "reasoning", "audio", "image"];
const priceMembers = [...rateMembers, "request", "longPrompt"];

function priceFaults(price: Members, path: string): readonly string[] {
  const { request, longPrompt = [] } = price;
  return [
    ...rateFaults(price, path),
    ...amountFaults({ request }, path),
    ...(Array.isArray(longPrompt)
      ? longPromptFaults(longPrompt, `${path}longPrompt`)
      : [`${path}longPrompt must be a list of { above, input, output }`]),
  ];
}

function longPromptFaults(steps: readonly unknown[], path: string): readonly string[] {
  let before = 0;
  return steps.flatMap((step, at) => {
    const name = `${path}[${at}]`;
    if (!isObject(step)) return [`${name} must be { above, input, output }`];
    const { above } = step;
    const ascends = isCount(above) && above > before;
    if (isCount(above)) before = above;
    return [
      ...unknownFaults(step, name, [...rateMembers, "above"]),
      ...(ascends ? [] : [`${name}.above must be a number of tokens, more than the one before`]),
      ...pairFaults(step, name),
      ...rateFaults(step, `${name}.`),
    ];
  });
}

function rateFaults(rates: Members, path: string): readonly string[] {
  const { input, output, cachedInput, cacheWrite, reasoning, audio = {}, image = {} } = rates;
  const nested = Object.entries({ audio, image }).flatMap(([name, value]) =>
    nestedFaults(value, `${path}${name}`, ["input", "output"]),
  );
  return [
    ...amountFaults({ input, output, cachedInput, reasoning }, path),
    ...(typeof cacheWrite === "object"
      ? nestedFaults(cacheWrite, `${path}cacheWrite`, ["5m", "1h"])
      : amountFaults({ cacheWrite }, path)),
    ...nested,
  ];
}

function pairFaults({ input, output }: Members, name: string): readonly string[] {
  return input === undefined || output === undefined ? [`${name} needs both input and output`] : [];
}

function nestedFaults(value: unknown, path: string, members: readonly string[]): readonly string[] {
  if (!isObject(value)) return [`${path} must be { ${members.join(", ")} }`];
  return [...unknownFaults(value, path, members), ...amountFaults(value, `${path}.`)];
}

function unknownFaults(
  value: Members,
  path: string,
  members: readonly string[],
): readonly string[] {
  return Object.keys(value)
    .filter((name) => !members.includes(name))
    .map((name) => `${path}.${name} is not a known price`);
}

function amountFaults(amounts: Members, path: string): readonly string[] {
  return Object.entries(amounts)
    .filter(([, amount]) => amount !== undefined && !isAmount(amount))
    .map(([name]) => `${path}${name} must be US dollars, from 0, to the nanodollar`);
}

function isAmount(amount: unknown): boolean {
  return (typeof amount === "number" || typeof amount === "string") && parseUsd(amount) !== null;
}

const mostFactor = 1_000;

/** What is wrong with how a gateway says it is billed, one sentence each, without a full stop. */
export function billingProblems(billing: Billing | undefined): readonly string[] {
  if (billing === undefined) return [];
  const { reportedCost = "ignore", reportedCostFactor = 2, autoTiers = [] } = billing;
  return [
    ...(reportedCost === "ignore" || reportedCost === "trust"
      ? []
      : ['reportedCost must be "trust" or "ignore"']),
    ...(reportedCostFactor >= 1 && reportedCostFactor <= mostFactor
      ? []
      : [`reportedCostFactor must be a number from 1 to ${mostFactor}`]),
    ...(Array.isArray(autoTiers) && autoTiers.every(isTierName)
      ? []
      : ["autoTiers must be a list of service tiers, in lower case"]),
  ];
}

type Members = Readonly<Record<string, unknown>>;

function isObject(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}
