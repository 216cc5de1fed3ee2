import { type UsageHour, usageDetails } from "@tollgate/core/store";
import type { SqlParameters } from "../statement.ts";
import { readRow } from "./row-reader.ts";

export const usageColumns = [
  "organization_id",
  "detail",
  "hour",
  "id",
  "names",
  "figures",
] as const;

/** Sums by hour as the parameters of their row. */
export function usageToRow({ organizationId, ...row }: UsageHour): SqlParameters {
  return { organization_id: organizationId, ...row };
}

/** Sums by hour from a row of `usageColumns`. */
export function usageFromRow(row: unknown): UsageHour {
  const read = readRow(row);
  return {
    organizationId: read.text("organization_id"),
    detail: read.oneOf("detail", usageDetails),
    hour: read.integer("hour"),
    id: read.text("id"),
    names: read.text("names"),
    figures: read.bytes("figures"),
  };
}
