import { schemaSteps } from "@tollgate/store-sql";
import { embeddedHoldColumns } from "../driver/held.ts";
import { sqliteDialect } from "./sqlite-dialect.ts";

const columns =
  "organization_id, step_id, attempt, budget_id, subject, period_start, unit, amount, settled";

/** What SQLite has in addition to the tables, by the version that brings it. */
const additions: ReadonlyMap<number, readonly string[]> = new Map([
  [
    1,
    [
      "CREATE INDEX steps_open ON steps (process_id, id) WHERE outcome = 'open'",
      "CREATE INDEX steps_by_decision ON steps (organization_id, decision_id)",
      "CREATE INDEX leaves_by_organization ON leaves (organization_id)",
      `CREATE VIEW open_steps AS
        SELECT process_id, id AS step_id, organization_id, renewal, output_tokens FROM steps
        WHERE outcome = 'open'`,
      `CREATE VIEW holds AS SELECT ${columns} FROM kept_holds
        UNION ALL SELECT ${embeddedHoldColumns} FROM steps s CROSS JOIN json_each(s.held) h`,
    ],
  ],
]);

/** The statements that lead from each version to the next, by the version they lead to; forward only. */
export function sqliteSchema(): ReadonlyMap<number, readonly string[]> {
  return new Map(
    [...schemaSteps(sqliteDialect)].map(([version, statements]) => [
      version,
      [...statements, ...(additions.get(version) ?? [])],
    ]),
  );
}
