import { schemaSteps } from "@tollgate/store-sql";
import { postgresDialect } from "./postgres-dialect.ts";

const { text, integer } = postgresDialect;

/** Where Steps stand whose id is of no partition's time: all of them until activity is kept for a limited time. */
export const restOfSteps = "steps_rest";

/** Room on each page for its Steps as they settle: they stay there then, and no index is written again. */
export const stepsStorage = "WITH (fillfactor = 40)";

/** Rows of their own: a Step in progress would otherwise be written again, with an entry in an index. */
const openSteps = `CREATE TABLE open_steps (
  process_id ${text} NOT NULL, step_id ${text} NOT NULL, organization_id ${text} NOT NULL,
  renewal ${integer} NOT NULL, output_tokens ${integer},
  PRIMARY KEY (process_id, step_id, organization_id))`;

/** What PostgreSQL has beside the tables, by the version that brings it. */
const additions: ReadonlyMap<number, readonly string[]> = new Map([
  [
    1,
    [
      // Numbers come from here and not from a row, which every change would have to lock.
      "CREATE SEQUENCE sequence",
      openSteps,
      `CREATE TABLE ${restOfSteps} PARTITION OF steps DEFAULT ${stepsStorage}`,
      "ALTER TABLE holds SET (fillfactor = 50)",
    ],
  ],
]);

/** The statements that lead from each version to the next, by the version they lead to; forward only. */
export function postgresSchema(): ReadonlyMap<number, readonly string[]> {
  return new Map(
    [...schemaSteps(postgresDialect)].map(([version, statements]) => [
      version,
      [...statements, ...(additions.get(version) ?? [])],
    ]),
  );
}
