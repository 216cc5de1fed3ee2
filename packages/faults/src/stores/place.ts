import type { Store } from "@tollgate/core/store";
import { postgresStore } from "@tollgate/store-postgres";
import { sqliteStore } from "@tollgate/store-sqlite";

/** A database that several processes share. */
export type Place =
  | { readonly filename: string }
  | { readonly url: string; readonly schema: string };

export function openPlace(place: Place): Store {
  return "filename" in place
    ? sqliteStore(place)
    : postgresStore({ url: place.url }, { schema: place.schema });
}

/** Reads what another process was told. */
export function isPlace(value: unknown): value is Place {
  if (typeof value !== "object" || value === null) return false;
  const names = "filename" in value ? ["filename"] : ["url", "schema"];
  return names.every((name) => typeof Reflect.get(value, name) === "string");
}
