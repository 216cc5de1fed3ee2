import { schemaSteps } from "@tollgate/store-sql";
import { postgresDialect } from "./postgres-dialect.ts";

const { text, integer } = postgresDialect;

/** The partition for Steps outside all ranges: all Steps, until activity is kept for a limited time. */
export const restOfSteps = "steps_rest";

/** Leaves room on each page for its Steps to settle: an update that stays on its page changes no index. */
export const stepsStorage = "WITH (fillfactor = 40)";

/** Open Steps have separate rows. As a column of `steps`, each change would rewrite the Step and an index entry. */
const openSteps = `CREATE TABLE open_steps (
  process_id ${text} NOT NULL, step_id ${text} NOT NULL, organization_id ${text} NOT NULL,
  renewal ${integer} NOT NULL, output_tokens ${integer},
  PRIMARY KEY (process_id, step_id, organization_id))`;

/** The statements that only PostgreSQL needs, by the version that adds them. */
const additions: ReadonlyMap<number, readonly string[]> = new Map([
  [
    1,
    [
      // Numbers come from a sequence, because every change would have to lock a row.
      "CREATE SEQUENCE sequence",
      openSteps,
      `CREATE TABLE ${restOfSteps} PARTITION OF steps DEFAULT ${stepsStorage}`,
      "ALTER TABLE holds SET (fillfactor = 50)",
    ],
  ],
]);

/** The statements that lead from each version to the next, keyed by the version they lead to; forward only. */
export function postgresSchema(): ReadonlyMap<number, readonly string[]> {
  return new Map(
    [...schemaSteps(postgresDialect)].map(([version, statements]) => [
      version,
      [...statements, ...(additions.get(version) ?? [])],
    ]),
  );
}
