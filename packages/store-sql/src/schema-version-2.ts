import type { SqlDialect } from "./dialect.ts";

/** What the second version adds to the first, one function for each thing it brings. */
export function schemaVersion2(_dialect: SqlDialect): readonly string[] {
  return [];
}
