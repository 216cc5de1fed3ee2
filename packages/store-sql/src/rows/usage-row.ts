import type { UsageHour } from "@tollgate/core/store";
import type { SqlParameters } from "../statement.ts";
import { readRow } from "./row-reader.ts";

export const usageColumns = ["organization_id", "hour", "id", "folded"] as const;

/** Sums by hour as the parameters of their row. */
export function usageToRow({ organizationId, hour, id, folded }: UsageHour): SqlParameters {
  return { organization_id: organizationId, hour, id, folded };
}

/** Sums by hour from a row of `usageColumns`. */
export function usageFromRow(row: unknown): UsageHour {
  const read = readRow(row);
  return {
    organizationId: read.text("organization_id"),
    hour: read.integer("hour"),
    id: read.text("id"),
    folded: read.text("folded"),
  };
}
