import type { Catalog } from "./find-entry.ts";

/** The release that this package depends on, to the digit: the catalog does not say its own, and bundles have no manifests. */
export const catalogVersion = "genai-prices@0.1.8";

/** A list that every release has. */
const knownList = "openai";

/** @throws Error when the catalog has come without its prices, as out of a bundle that left them behind. */
export function requirePrices(catalog: Pick<Catalog, "findProvider">): void {
  const models = catalog.findProvider({ providerId: knownList })?.models ?? [];
  if (models.length > 0) return;
  throw new Error(
    `catalogPrices(): @pydantic/genai-prices has no prices of "${knownList}", so calls would go unpriced. Let the bundler include that package whole, or leave it external and ship it.`,
  );
}
