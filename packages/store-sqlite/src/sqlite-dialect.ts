import type { SqlDialect } from "@tollgate/store-sql";
import { embeddedHoldColumns, embeddingStatements } from "./step-row.ts";

const holdColumns =
  "organization_id, step_id, attempt, budget_id, subject, period_start, unit, amount, settled";

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
  tables: {
    // `held` contains the holds of all attempts, `permit` the decision that opened the Step, which has the Step's id. A Turn
    // with the id of a Step is the one that this Step began. Removing a Step moves all of them to separate rows.
    steps: { columns: "held text?, renewal integer, output_tokens integer?, permit text?" },
    // A view of the Steps.
    open_steps: null,
    holds: { name: "kept_holds" },
    turns: { name: "kept_turns" },
    // The greatest number is the last one of the store's sequence.
    leaves: { key: "sequence" },
  },
  additions: [
    "CREATE INDEX steps_open ON steps (process_id, id) WHERE outcome = 'open'",
    // For reconciling, which reads corrections in the order they were made.
    "CREATE INDEX corrections_in_order ON corrections (sequence)",
    "CREATE INDEX leaves_by_organization ON leaves (organization_id)",
    `CREATE VIEW open_steps AS
      SELECT process_id, id AS step_id, organization_id, renewal, output_tokens FROM steps
      WHERE outcome = 'open'`,
    `CREATE VIEW turns AS SELECT organization_id, id, session_id FROM kept_turns
      UNION ALL SELECT organization_id, id, session_id FROM steps WHERE turn_id = id`,
    `CREATE VIEW holds AS SELECT ${holdColumns} FROM kept_holds
      UNION ALL SELECT ${embeddedHoldColumns} FROM steps s CROSS JOIN json_each(s.held) h`,
  ],
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
