import type { ModelFacts } from "../domain/model-facts.ts";
import type { ModelId } from "../domain/model-id.ts";
import type { Price } from "../domain/price.ts";

/** Prices and facts of models. Each request calls `priceOf` and `factsOf`, so they must be fast. */
export interface PriceBook {
  /** The price of a model at a time (milliseconds since the epoch), or null if unknown. Unknown isn't zero. */
  priceOf(model: ModelId, at: number): Price | null;
  /** A model's output limit and whether it reasons, each null if unknown. */
  factsOf(model: ModelId): ModelFacts;
  /**
   * The upstream names of the models it knows for a gateway. `GET /v1/models` shows them for a gateway configured without
   * models. `vendor` is the vendor that the upstream leaves out of its names. Default: it knows none.
   */
  modelNames?(
    gateway: { readonly gateway: string; readonly vendor: string | null },
    at: number,
  ): readonly string[];
}
