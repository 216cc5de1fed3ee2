import type {
  ConfiguredPrice,
  ConfiguredRates,
  ModelConfiguration,
  UsdAmount,
} from "../contracts/provider.ts";
import type { LongPromptPrice, Price, Rates, TierPrice } from "../domain/price.ts";
import { parseUsd } from "../kernel/nano-usd.ts";

/** The price of a configured model in nanodollars; null unless both input and output have a price. */
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

/** The configured rates, in nanodollars. */
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
  } satisfies Readonly<Record<keyof Rates, UsdAmount | undefined>>;
  return Object.fromEntries(
    Object.entries(amounts).flatMap(([name, amount]) => {
      const rate = amount === undefined ? null : parseUsd(amount);
      return rate === null ? [] : [[name, rate]];
    }),
  );
}
