import type {
  Billing,
  ConfiguredPrice,
  ConfiguredRates,
  ListedModel,
  ModelConfiguration,
} from "../contracts/provider.ts";
import { isOwnTier, isTierName } from "../domain/service-tier.ts";
import type { Schema } from "../input/read.ts";
import { fullModelId, text, usd, vendorAndModel, wholeNumber } from "../input/values.ts";
import * as z from "../input/z.ts";

const amount = z.exactOptional(usd);

const bothWays = z.strictObject({ input: amount, output: amount });

const rates = {
  input: amount,
  output: amount,
  cachedInput: amount,
  cacheWrite: z.exactOptional(z.union([usd, z.strictObject({ "5m": amount, "1h": amount })])),
  reasoning: amount,
  audio: z.exactOptional(bothWays),
  image: z.exactOptional(bothWays),
} satisfies Readonly<Record<keyof ConfiguredRates, Schema<unknown>>>;

const pair = { input: usd, output: usd };

const longPrompt = z
  .array(z.strictObject({ ...rates, ...pair, above: wholeNumber(1) }))
  .check(
    z.refine(
      (steps) => steps.every(({ above }, at) => at === 0 || above > (steps[at - 1]?.above ?? 0)),
      { error: "must be in ascending order of `above`" },
    ),
  );

const price = { ...rates, request: amount, longPrompt: z.exactOptional(longPrompt) };

const tierPrice: Schema<ConfiguredPrice> = z.strictObject({ ...price, ...pair });

const ownTier = text(
  isOwnTier,
  "must be the lower-case name of a tier other than the standard one, whose prices are the model's",
);

const configuration = {
  ...price,
  tiers: z.exactOptional(z.record(ownTier, tierPrice)),
  maxOutputTokens: z.exactOptional(wholeNumber(1)),
  reasons: z.exactOptional(z.boolean()),
};

/** Prices come in pairs. With only one of them, calls would silently have no price. */
const paired = z.refine<ModelConfiguration>(
  (model) =>
    !Object.keys(model).some((name) => name in price || name === "tiers") ||
    (model.input !== undefined && model.output !== undefined),
  { error: "must have both `input` and `output`" },
);

const shape = { error: "must be { input, output }, in US dollars per million tokens" };

/** A configured model: its prices, its output cap and whether it reasons. */
const modelSchema: Schema<ModelConfiguration> = z.strictObject(configuration, shape).check(paired);

const listedModel: Schema<ListedModel> = z
  .strictObject({ ...configuration, upstreamName: z.exactOptional(z.string()) }, shape)
  .check(paired);

/** A provider's models by `<vendor>/<model>`. */
export const listedModels: Schema<Readonly<Record<string, ListedModel>>> = z.record(
  vendorAndModel,
  listedModel,
);

/** Prices by full model id. */
export const priceTableSchema: Schema<Readonly<Record<string, ModelConfiguration>>> = z.record(
  fullModelId,
  modelSchema,
);

const factorRule = "must be a number from 1 to 1,000";

const tierName = text(isTierName, "must be the name of a service tier, such as priority");

/** How a gateway's calls are charged. */
export const billingSchema: Schema<Billing> = z.strictObject({
  reportedCost: z.exactOptional(z.enum(["trust", "ignore"])),
  reportedCostFactor: z.exactOptional(
    z
      .number({ error: factorRule })
      .check(z.minimum(1, { error: factorRule }), z.maximum(1_000, { error: factorRule })),
  ),
  autoTiers: z.exactOptional(z.array(tierName)),
});

/** The options of a provider that define its models. */
export const modelOptions = {
  models: z.exactOptional(listedModels),
  open: z.exactOptional(z.boolean()),
  vendor: z.exactOptional(z.string()),
};

/** The options of a provider that define which state its models get back. */
export const stateOptions = {
  restoreState: z.exactOptional(z.enum(["turn", "history", "none"])),
  reasoningContent: z.exactOptional(z.boolean()),
  cacheBreakpoints: z.exactOptional(z.boolean()),
};
