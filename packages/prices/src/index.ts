export { type CatalogPricesOptions, catalogPrices } from "./catalog-prices.ts";
