import type { Step, Tenant } from "@tollgate/core/store";
import {
  type Correctable,
  correctionsOf,
  stepFromRow,
  stepReadColumns,
  withCorrections,
} from "@tollgate/store-sql";
import type { Connection } from "../database/connection.ts";
import { postgresDialect } from "../database/postgres-dialect.ts";
import { readById } from "./read-by-id.ts";

const steps = { name: "steps", columns: stepReadColumns };
const corrections = correctionsOf(postgresDialect);

/** One Step with its corrections; null when there is none. */
export async function correctedStep(
  connection: Pick<Connection, "get" | "all">,
  organizationId: Tenant,
  id: string,
): Promise<Step | null> {
  const step = await readById(connection, steps, { organizationId, id }, stepFromRow);
  return step && ((await correctedSteps(connection, [step]))[0] ?? null);
}

/** Steps with their corrections, read for each of their organizations. */
export async function correctedSteps<One extends Correctable>(
  connection: Pick<Connection, "all">,
  page: readonly One[],
): Promise<readonly One[]> {
  const byOrganization = Map.groupBy(page, ({ organizationId }) => organizationId);
  const rows: unknown[] = [];
  for (const [organizationId, own] of byOrganization) {
    const parameters = {
      organization_id: organizationId,
      step_ids: postgresDialect.list(own.map(({ id }) => id)),
    };
    rows.push(...(await connection.all(corrections, parameters)));
  }
  return withCorrections(page, rows);
}
