import type { Store } from "@tollgate/core/store";
import { postgresStore } from "@tollgate/store-postgres";
import { sqliteStore } from "@tollgate/store-sqlite";

/** A database that several processes share. */
export type DatabaseLocation =
  | { readonly filename: string }
  | { readonly url: string; readonly schema: string };

export function openDatabase(place: DatabaseLocation): Store {
  return "filename" in place
    ? sqliteStore(place)
    : postgresStore({ url: place.url }, { schema: place.schema });
}

/** Checks a value from another process. */
export function isDatabaseLocation(value: unknown): value is DatabaseLocation {
  if (typeof value !== "object" || value === null) return false;
  const names = "filename" in value ? ["filename"] : ["url", "schema"];
  return names.every((name) => typeof Reflect.get(value, name) === "string");
}
