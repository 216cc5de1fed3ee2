import type { SqlDialect } from "@tollgate/store-sql";

export const sqliteDialect: SqlDialect = {
  placeholder: () => "?",
  text: "TEXT",
  integer: "INTEGER",
  bytes: "BLOB",
  keyedTable: " STRICT, WITHOUT ROWID",
  isOneOf: (column, parameter) => `${column} IN (SELECT value FROM json_each(${parameter}))`,
  list: (values) => JSON.stringify(values),
};
