import type { ModelPrice } from "@pydantic/genai-prices";
import type { ModelId } from "@tollgate/core/provider";

/** What is read of the catalog. */
export type Catalog = Pick<typeof import("@pydantic/genai-prices"), "calcPrice" | "findProvider">;

/** What the catalog says of a model: the name of its entry and the prices that hold at the time asked for. */
export interface CatalogEntry {
  /** The id of the list it is in. */
  readonly list?: string;
  readonly name: string;
  readonly prices: ModelPrice;
}

/** A variant of a model, as `:free` or `:online`; a version such as `:0` or a size such as `:8b` is none. */
const variant = /:[a-z]+$/i;

/** A reseller that lists models as `<vendor>/<model>`; the same model name under another vendor is another model. */
const listsByVendor = new Set(["openrouter"]);

/** Finds a model in a list: the one named, else its gateway's if the catalog knows the gateway, else its vendor's. */
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
    const wanted = variant.exec(model.model)?.[0] ?? "";
    // The catalog matches some names by their beginning, and a variant has a price of its own.
    return found.model.id.toLowerCase().endsWith(wanted.toLowerCase())
      ? { list: found.provider.id, name: found.model.id, prices: found.model_price }
      : null;
  }
  return null;
}

/** The list that a model's gateway is charged by; null for none. */
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

/** The id of the list the catalog knows by this name or one like it. */
export function listNamed(catalog: Pick<Catalog, "findProvider">, name: string): string | null {
  return catalog.findProvider({ providerId: name })?.id ?? null;
}
