import type { ModelFacts } from "../domain/model-facts.ts";
import type { ModelId } from "../domain/model-id.ts";
import type { Price } from "../domain/price.ts";

/** What models cost, and what else is known of them. `priceOf` and `factsOf` are asked on the path of a request: they must be fast. */
export interface PriceBook {
  /** The price of a model at a time (milliseconds since the epoch), or null when it is not known: unknown is not zero. */
  priceOf(model: ModelId, at: number): Price | null;
  /** How much a model can write and whether it reasons, each null when it is not known. */
  factsOf(model: ModelId): ModelFacts;
  /**
   * The upstream names of the models it knows for a gateway, for `GET /v1/models` of a gateway that is configured without
   * models. `vendor` is the one whose models the upstream names without their vendor. Absent: it knows none.
   */
  modelNames?(
    gateway: { readonly gateway: string; readonly vendor: string | null },
    at: number,
  ): readonly string[];
}
