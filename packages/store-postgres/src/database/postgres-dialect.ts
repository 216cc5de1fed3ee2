import { listed, type SqlDialect, schemaSteps } from "@tollgate/store-sql";

/** The partition for Steps outside all ranges: all Steps, until activity is kept for a limited time. */
export const restOfSteps = "steps_rest";

/** Leaves room on each page for its Steps to settle: an update that stays on its page changes no index. */
export const stepsStorage = "WITH (fillfactor = 40)";

/** The time of the statement. The transaction may have started earlier and waited since. */
export const databaseNow = "CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS BIGINT)";

export const postgresDialect: SqlDialect = {
  placeholder: (position) => `$${position}`,
  text: 'TEXT COLLATE "C"',
  integer: "BIGINT",
  bytes: "BYTEA",
  secret: "concat(gen_random_uuid(), gen_random_uuid())",
  keyedTable: "",
  wideTable: "",
  // Ids of UUID version 7 sort by time, so each partition is a range of time, and an id leads to a single partition.
  stepsTable: " PARTITION BY RANGE (id)",
  tables: { leaves: { key: "organization_id, sequence" } },
  additions: [
    // Numbers come from a sequence, because every change would have to lock a row.
    "CREATE SEQUENCE sequence",
    `CREATE TABLE ${restOfSteps} PARTITION OF steps DEFAULT ${stepsStorage}`,
    "ALTER TABLE holds SET (fillfactor = 50)",
    // For lists of a key's Sessions from all sources.
    `CREATE INDEX sessions_by_key ON sessions (organization_id, key_id, updated)
      WHERE ${listed.sessions}`,
  ],
  isOneOf: (column, parameter) => `${column} = ANY(CAST(${parameter} AS TEXT[]))`,
  contains: (column, parameter) => `strpos(${column}, ${parameter}) > 0`,
  jsonArray: (columns) => `CAST(json_build_array(${columns.join(", ")}) AS TEXT)`,
  joinPage: (table, page) => `CROSS JOIN LATERAL (SELECT * FROM ${table} ${page}) AS r`,
  locked: (statement) => `${statement} FOR NO KEY UPDATE`,
  databaseTime: `SELECT ${databaseNow} AS now`,
  updateProgress: `UPDATE open_steps AS o
    SET renewal = CAST(:renewal AS BIGINT), output_tokens = CAST(g.value ->> 2 AS BIGINT)
    FROM json_array_elements(CAST(:steps AS JSON)) AS g
    WHERE o.process_id = :process_id
      AND o.organization_id = g.value ->> 0 AND o.step_id = g.value ->> 1`,
  list: arrayOf,
};

/** The statements that lead from each version to the next, keyed by the version they lead to; forward only. */
export function postgresSchema(): ReadonlyMap<number, readonly string[]> {
  return schemaSteps(postgresDialect);
}

/** An array parameter in PostgreSQL's text format. */
export function arrayOf(values: readonly (string | number)[]): string {
  return `{${values.map((value) => element(String(value))).join(",")}}`;
}

/** An element of an array literal. */
function element(value: string): string {
  return `"${value.replace(/["\\]/g, "\\$&")}"`;
}
