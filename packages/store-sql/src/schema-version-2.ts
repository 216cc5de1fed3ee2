import type { SqlDialect } from "./dialect.ts";

/** What the second version adds to the first, one function for each thing it brings. */
export function schemaVersion2(dialect: SqlDialect): readonly string[] {
  return [...connections(dialect)];
}

/** Sealed credentials of customer-owned gateways, found and listed by their key alone. */
function connections({ text, integer, bytes, keyedTable }: SqlDialect): readonly string[] {
  return [
    `CREATE TABLE connections (
      organization_id ${text} NOT NULL, gateway ${text} NOT NULL, id ${text} NOT NULL,
      created_at ${integer} NOT NULL, updated_at ${integer} NOT NULL,
      key_id ${text} NOT NULL, wrapped_key ${bytes} NOT NULL, credential ${bytes} NOT NULL,
      PRIMARY KEY (organization_id, gateway))${keyedTable}`,
  ];
}
