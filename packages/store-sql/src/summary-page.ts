import {
  createUsageFold,
  type StorePage,
  type SummaryPage,
  type SummaryQuery,
  type SummedStep,
} from "@tollgate/core/store";
import type { SqlDialect } from "./dialect.ts";
import { lists } from "./lists.ts";
import { summedColumns, unfoldedColumns } from "./rows/summed-row.ts";
import type { PagedList } from "./select-page.ts";

/** Steps in the order of their list, with the columns that a summary reads. */
export const summedSteps: PagedList = { ...lists.steps, columns: summedColumns };

/** Steps in the order of folding, oldest first. */
export function unfoldedSteps(dialect: SqlDialect): PagedList {
  return {
    ...lists.steps,
    name: "folded steps",
    columns: unfoldedColumns(dialect),
    direction: "ASC",
    tie: { column: "sequence", direction: "ASC", type: "integer" },
  };
}

/** The sums over a page of Steps. */
export function summaryOf(query: SummaryQuery, page: StorePage<SummedStep>): SummaryPage {
  const fold = createUsageFold(query.by, query);
  for (const step of page.data) fold.addStep(step);
  return { groups: fold.groups(), nextCursor: page.nextCursor };
}
