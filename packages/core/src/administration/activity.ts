import type { OneOrMany } from "../domain/pattern.ts";
import type { SummaryDimension } from "../domain/usage-group.ts";
import { filters, read } from "../input/read.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import { type ActivityRecord, toActivityRecord } from "./activity-records.ts";
import { type ExportOptions, exportFile } from "./export.ts";
import { activityColumns } from "./export-columns.ts";
import { type List, listOf, type Paging } from "./list.ts";
import { readSteps } from "./read-steps.ts";
import { activityFilter, exportOptions } from "./schemas.ts";
import { readStepFilter, type StepFilter } from "./step-filter.ts";
import { summarize, type UsageSummary } from "./summaries.ts";
import { tenantOf } from "./tenant.ts";

/** The activity of an organization: a record for each successful completion. */
export interface Activity {
  /** Newest first. */
  list(filter: ActivityFilter, paging?: Paging): List<ActivityRecord>;
  /** As `steps.summarize`, of completed Steps alone. What failed costs money too: it adds up over Steps. */
  summarize(
    filter: ActivityFilter,
    by: OneOrMany<Exclude<SummaryDimension, "outcome">>,
  ): Promise<readonly UsageSummary[]>;
  /** As `steps.export`, of activity records. */
  export(filter: ActivityFilter, options: ExportOptions): ReadableStream<Uint8Array>;
}

/** Which records: every member of a filter of Steps, except how they ended. */
export type ActivityFilter = Omit<StepFilter, "outcome">;

export function createActivity(line: GatewayContext, ready: () => Promise<void>): Activity {
  const list: Activity["list"] = (filter, paging) =>
    listOf(
      async (storePaging) => readSteps(line, ready, completed(filter), storePaging),
      toActivityRecord,
      paging,
    );
  return {
    list,
    export: (filter, options) => {
      const { format } = read(exportOptions, options, { noun: "option" });
      readStepFilter(completed(filter), line.dataClasses);
      return exportFile(line, ready, {
        format,
        columns: activityColumns,
        tenant: tenantOf(filter),
        read: (organizationId, paging) => list({ ...filter, organizationId }, paging),
      });
    },
    summarize: async (filter, by) => summarize(line, ready, { filter: completed(filter), by }),
  };
}

function completed(filter: ActivityFilter): StepFilter {
  return { ...read(activityFilter, filter, filters), outcome: "completed" };
}
