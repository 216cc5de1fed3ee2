import type { Step, Tenant } from "@tollgate/core/store";
import {
  type Correctable,
  correctionsOf,
  errorsOf,
  hasError,
  stepFromRow,
  stepReadColumns,
  withCorrections,
  withErrors,
} from "@tollgate/store-sql";
import type { Connection } from "../database/connection.ts";
import { sqliteDialect } from "../database/sqlite-dialect.ts";
import { readById } from "./read-by-id.ts";

const steps = { name: "steps", columns: stepReadColumns };
const errors = errorsOf(sqliteDialect);
const corrections = correctionsOf(sqliteDialect);

/** One Step with its corrections and what its providers said; null when there is none. */
export function wholeStep(
  connection: Pick<Connection, "get" | "all">,
  organizationId: Tenant,
  id: string,
): Step | null {
  const step = readById(connection, steps, { organizationId, id }, stepFromRow);
  return step && (wholeSteps(connection, [step])[0] ?? null);
}

/** Steps with their corrections and what their providers said. */
export function wholeSteps(
  connection: Pick<Connection, "all">,
  page: readonly Step[],
): readonly Step[] {
  const failed = page.filter(hasError);
  const rows = rowsOf(connection, errors, failed);
  return withErrors(correctedSteps(connection, page), rows);
}

/** Steps with their corrections, read for each of their organizations. */
export function correctedSteps<One extends Correctable>(
  connection: Pick<Connection, "all">,
  page: readonly One[],
): readonly One[] {
  return withCorrections(page, rowsOf(connection, corrections, page));
}

/** What a statement gives for Steps, asked for each of their organizations. */
function rowsOf(
  connection: Pick<Connection, "all">,
  statement: string,
  page: readonly Correctable[],
): readonly unknown[] {
  const byOrganization = Map.groupBy(page, ({ organizationId }) => organizationId);
  return [...byOrganization].flatMap(([organizationId, own]) =>
    connection.all(statement, {
      organization_id: organizationId,
      step_ids: sqliteDialect.list(own.map(({ id }) => id)),
    }),
  );
}
