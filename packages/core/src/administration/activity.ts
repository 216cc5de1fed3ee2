import type { OneOrMany } from "../domain/pattern.ts";
import type { SummaryDimension } from "../domain/usage-group.ts";
import { filters, read } from "../input/read.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import { type ExportOptions, exportFile } from "./export.ts";
import { activityColumns } from "./export-columns.ts";
import { type List, listOf, type Paging } from "./list.ts";
import { activityDimensionsSchema, activityFilter } from "./schemas.ts";
import { readStepFilter, readSteps, type StepFilter } from "./step-filter.ts";
import { type ActivityRecord, toActivityRecord } from "./step-records.ts";
import { summarize, type UsageSummary } from "./summaries.ts";
import { tenantOf } from "./tenant.ts";

/** Activity: one record for each successful completion. */
export interface Activity {
  /** Newest first. */
  list(filter: ActivityFilter, paging?: Paging): List<ActivityRecord>;
  /** Sums up completed Steps, as `steps.summarize` does. Failed Steps cost money too: use `steps.summarize` for totals. */
  summarize(
    filter: ActivityFilter,
    by: OneOrMany<Exclude<SummaryDimension, "outcome">>,
  ): Promise<readonly UsageSummary[]>;
  /** Exports activity records, as `steps.export` does with Steps. */
  export(filter: ActivityFilter, options: ExportOptions): ReadableStream<Uint8Array>;
}

/** Selects activity, by every member of a Step filter except `outcome`. */
export type ActivityFilter = Omit<StepFilter, "outcome">;

export function createActivity(context: GatewayContext, ready: () => Promise<void>): Activity {
  const list: Activity["list"] = (filter, paging) =>
    listOf(
      async (storePaging) => readSteps(context, ready, completed(filter), storePaging),
      toActivityRecord,
      paging,
    );
  return {
    list,
    export: (filter, options) => {
      readStepFilter(completed(filter), context.dataClasses);
      return exportFile(context, ready, options, {
        columns: activityColumns,
        tenant: tenantOf(filter),
        read: (organizationId, paging) => list({ ...filter, organizationId }, paging),
      });
    },
    summarize: async (filter, by) =>
      summarize(context, ready, {
        filter: completed(filter),
        by: read(activityDimensionsSchema, by, { path: "by" }),
      }),
  };
}

function completed(filter: ActivityFilter): StepFilter {
  return { ...read(activityFilter, filter, filters), outcome: "completed" };
}
