import { readPrice } from "./read-price.ts";

type Catalog = Pick<typeof import("@pydantic/genai-prices"), "calcPrice" | "findProvider">;

/**
 * The names of a list's models that can be called by them and have a price; those that are out of service are left out.
 * Each entry is asked for its own name: some ids of the catalog are not what the upstream takes.
 */
export function namesIn(catalog: Catalog, list: string, at: number): readonly string[] {
  const provider = catalog.findProvider({ providerId: list });
  if (provider === undefined) return [];
  return provider.models.flatMap((model) => {
    if (model.deprecated === true) return [];
    const alone = { ...provider, models: [model], fallback_model_providers: [] };
    const found = catalog.calcPrice({}, model.id, { provider: alone, timestamp: new Date(at) });
    if (!found) return [];
    const entry = { name: model.id, prices: found.model_price };
    return readPrice(entry, "") === null ? [] : [model.id];
  });
}
