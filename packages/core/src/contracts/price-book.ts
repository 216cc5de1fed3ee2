import type { ModelId } from "../domain/model-id.ts";
import type { Price } from "../domain/price.ts";

/** What models cost. */
export interface PriceBook {
  /** The price of a model now, or null when it is not known: unknown is not zero. */
  priceOf(model: ModelId, at: number): Price | null;
}
