import type { ModelPrice } from "@pydantic/genai-prices";
import type { ModelId } from "@tollgate/core/provider";

/** The functions of the catalog that this package uses. */
export type Catalog = Pick<typeof import("@pydantic/genai-prices"), "calcPrice" | "findProvider">;

/** A model in the catalog: the name of its entry and its prices at the requested time. */
export interface CatalogEntry {
  /** The id of its list. */
  readonly list?: string;
  readonly name: string;
  /** The requested name, which may differ. */
  readonly wanted?: string;
  readonly prices: ModelPrice;
}

/** A variant of a model, such as `:free` or `:online`. Versions such as `:0` and sizes such as `:8b` aren't variants. */
const variant = /:[a-z]+$/i;

/** Resellers that list models as `<vendor>/<model>`, where two vendors can have a model of the same name. */
const listsByVendor = new Set(["openrouter"]);

/** Finds a model in the list that `chooseList` returns. */
export function findEntry(
  catalog: Catalog,
  model: ModelId,
  options: { readonly at: number; readonly list: string | null | undefined },
): CatalogEntry | null {
  const list = chooseList(catalog, model, options.list);
  if (list === null) return null;
  const full = `${model.vendor}/${model.model}`;
  for (const name of listsByVendor.has(list) ? [full] : [model.model, full]) {
    const found = catalog.calcPrice({}, name, {
      providerId: list,
      timestamp: new Date(options.at),
    });
    if (!found) continue;
    const { id } = found.model;
    const suffix = variant.exec(model.model)?.[0] ?? "";
    // The catalog matches some names by their start, but a variant has its own price.
    return id.toLowerCase().endsWith(suffix.toLowerCase())
      ? { list: found.provider.id, name: id, wanted: name, prices: found.model_price }
      : null;
  }
  return null;
}

/** The price list of a model: the configured one, otherwise its gateway's, otherwise its vendor's. Null for none. */
export function chooseList(
  catalog: Pick<Catalog, "findProvider">,
  model: Pick<ModelId, "gateway" | "vendor">,
  named: string | null | undefined,
): string | null {
  if (named === null) return null;
  if (named !== undefined && named !== "vendor") return named;
  const gateway = named === undefined ? listNamed(catalog, model.gateway) : null;
  return gateway ?? listNamed(catalog, model.vendor);
}

/** The id of the list with this name or a similar one; null if the catalog has none. */
export function listNamed(catalog: Pick<Catalog, "findProvider">, name: string): string | null {
  return catalog.findProvider({ providerId: name })?.id ?? null;
}
