import { stepReadColumns } from "../rows/step-row.ts";

/** The statements that settling a Step, or opening its next attempt, runs. */
export const stepStatements = {
  step: `SELECT ${stepReadColumns.join(", ")} FROM steps
    WHERE organization_id = :organization_id AND id = :id`,
} as const;
