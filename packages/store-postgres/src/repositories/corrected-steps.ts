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
import { postgresDialect } from "../database/postgres-dialect.ts";
import { readById } from "./read-by-id.ts";

const steps = { name: "steps", columns: stepReadColumns };
const errors = errorsOf(postgresDialect);
const corrections = correctionsOf(postgresDialect);

/** One Step with its corrections and what its providers said; null when there is none. */
export async function wholeStep(
  connection: Pick<Connection, "get" | "all">,
  organizationId: Tenant,
  id: string,
): Promise<Step | null> {
  const step = await readById(connection, steps, { organizationId, id }, stepFromRow);
  return step && ((await wholeSteps(connection, [step]))[0] ?? null);
}

/** Steps with their corrections and what their providers said. */
export async function wholeSteps(
  connection: Pick<Connection, "all">,
  page: readonly Step[],
): Promise<readonly Step[]> {
  const failed = page.filter(hasError);
  const rows = await rowsOf(connection, errors, failed);
  return withErrors(await correctedSteps(connection, page), rows);
}

/** Steps with their corrections, read for each of their organizations. */
export async function correctedSteps<One extends Correctable>(
  connection: Pick<Connection, "all">,
  page: readonly One[],
): Promise<readonly One[]> {
  return withCorrections(page, await rowsOf(connection, corrections, page));
}

/** What a statement gives for Steps, asked for each of their organizations. */
async function rowsOf(
  connection: Pick<Connection, "all">,
  statement: string,
  page: readonly Correctable[],
): Promise<readonly unknown[]> {
  const byOrganization = Map.groupBy(page, ({ organizationId }) => organizationId);
  const rows: unknown[] = [];
  for (const [organizationId, own] of byOrganization) {
    const parameters = {
      organization_id: organizationId,
      step_ids: postgresDialect.list(own.map(({ id }) => id)),
    };
    rows.push(...(await connection.all(statement, parameters)));
  }
  return rows;
}
