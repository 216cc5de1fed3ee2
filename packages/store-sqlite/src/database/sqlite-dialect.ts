import type { SqlDialect } from "@tollgate/store-sql";

export const sqliteDialect: SqlDialect = {
  placeholder: () => "?",
  text: "TEXT",
  integer: "INTEGER",
  bytes: "BLOB",
  keyedTable: " STRICT, WITHOUT ROWID",
  // Sorted by its key, a table has its rows in its inner pages, too: of wide ones, few fit below each, and a commit
  // writes many pages of it again. Their key is an index of its own.
  wideTable: " STRICT",
  stepsTable: " STRICT",
  // `held` are its holds, of all attempts; the three last are of the permit that opened it. What outlives a Step moves to a
  // row of its own when the Step goes.
  stepsBesides: `held TEXT, renewal INTEGER NOT NULL, output_tokens INTEGER,
      verdict TEXT, facts TEXT, policy_version TEXT,`,
  holdsTable: "kept_holds",
  sessionsByKey: [],
  // The greatest one is the last of the store's sequence, which has no row of its own.
  leafNumber: "INTEGER PRIMARY KEY",
  leafKey: "",
  isOneOf: (column, parameter) => `${column} IN (SELECT value FROM json_each(${parameter}))`,
  contains: (column, parameter) => `instr(${column}, ${parameter}) > 0`,
  joinPage: (table, page) =>
    `CROSS JOIN ${table} r
      ON r.organization_id = o.id AND r.id IN (SELECT id FROM ${table} ${page})`,
  // A transaction that writes is the only one.
  locked: (statement) => statement,
  list: (values) => JSON.stringify(values),
};
