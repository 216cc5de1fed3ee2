import type { Step, Tenant } from "@tollgate/core/store";
import {
  type Correctable,
  correctionsOf,
  stepFromRow,
  stepReadColumns,
  withCorrections,
} from "@tollgate/store-sql";
import type { Connection } from "../database/connection.ts";
import { sqliteDialect } from "../database/sqlite-dialect.ts";
import { readById } from "./read-by-id.ts";

const steps = { name: "steps", columns: stepReadColumns };
const corrections = correctionsOf(sqliteDialect);

/** One Step with its corrections; null when there is none. */
export function correctedStep(
  connection: Pick<Connection, "get" | "all">,
  organizationId: Tenant,
  id: string,
): Step | null {
  const step = readById(connection, steps, { organizationId, id }, stepFromRow);
  return step && (correctedSteps(connection, [step])[0] ?? null);
}

/** Steps with their corrections, read for each of their organizations. */
export function correctedSteps<One extends Correctable>(
  connection: Pick<Connection, "all">,
  page: readonly One[],
): readonly One[] {
  const byOrganization = Map.groupBy(page, ({ organizationId }) => organizationId);
  const rows = [...byOrganization].flatMap(([organizationId, own]) =>
    connection.all(corrections, {
      organization_id: organizationId,
      step_ids: sqliteDialect.list(own.map(({ id }) => id)),
    }),
  );
  return withCorrections(page, rows);
}
