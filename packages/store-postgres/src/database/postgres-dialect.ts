import type { SqlDialect } from "@tollgate/store-sql";

export const postgresDialect: SqlDialect = {
  placeholder: (position) => `$${position}`,
  text: 'TEXT COLLATE "C"',
  integer: "BIGINT",
  bytes: "BYTEA",
  keyedTable: "",
  isOneOf: (column, parameter) => `${column} = ANY(CAST(${parameter} AS TEXT[]))`,
  list: (values) => `{${values.map(element).join(",")}}`,
};

/** An element of an array literal. */
function element(value: string): string {
  return `"${value.replace(/["\\]/g, "\\$&")}"`;
}
