import { stepReadColumns } from "../rows/step-row.ts";

/** What settling a Step, or opening its next attempt, reads. */
export const stepStatements = {
  step: `SELECT ${stepReadColumns.join(", ")} FROM steps
    WHERE organization_id = :organization_id AND id = :id`,
} as const;
