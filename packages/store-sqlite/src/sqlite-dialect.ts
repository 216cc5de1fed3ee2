import type { SqlDialect } from "@tollgate/store-sql";
import { embeddingStatements } from "./step-row.ts";

export const sqliteDialect: SqlDialect = {
  placeholder: () => "?",
  text: "TEXT",
  integer: "INTEGER",
  bytes: "BLOB",
  secret: "hex(randomblob(32))",
  keyedTable: " STRICT, WITHOUT ROWID",
  // A table sorted by its key also has rows in its inner pages. If rows are wide, few fit on a page and a commit rewrites
  // many pages, so wide tables have a separate index for their key.
  wideTable: " STRICT",
  stepsTable: " STRICT",
  // `held` contains the holds of all attempts, `permit` the decision that opened the Step, which has the Step's id. A Turn
  // with the id of a Step is the one that this Step began. Removing a Step moves all of them to separate rows.
  stepsBesides: "held TEXT, renewal INTEGER NOT NULL, output_tokens INTEGER, permit TEXT,",
  holdsTable: "kept_holds",
  turnsTable: "kept_turns",
  sessionsByKey: [],
  // The greatest number is the last one of the store's sequence.
  leafNumber: "INTEGER PRIMARY KEY",
  leafKey: "",
  isOneOf: (column, parameter) => `${column} IN (SELECT value FROM json_each(${parameter}))`,
  contains: (column, parameter) => `instr(${column}, ${parameter}) > 0`,
  jsonArray: (columns) => `json_array(${columns.join(", ")})`,
  joinPage: (table, page) =>
    `CROSS JOIN ${table} r
      ON r.organization_id = o.id AND r.id IN (SELECT id FROM ${table} ${page})`,
  // SQLite has only one writing transaction at a time.
  locked: (statement) => statement,
  databaseTime: null,
  updateProgress: embeddingStatements.progress,
  list: (values) => JSON.stringify(values),
};
