import {
  createUsageFold,
  type StorePage,
  type SummaryPage,
  type SummaryQuery,
  type SummedStep,
} from "@tollgate/core/store";
import { lists } from "./lists.ts";
import { summedColumns } from "./rows/summed-row.ts";
import type { PagedList } from "./select-page.ts";

/** Steps in the order of their list, with the columns that a summary reads. */
export const summedSteps: PagedList = { ...lists.steps, columns: summedColumns };

/** The sums over a page of Steps. */
export function summaryOf(query: SummaryQuery, page: StorePage<SummedStep>): SummaryPage {
  const fold = createUsageFold(query.by, query);
  for (const step of page.data) fold.addStep(step);
  return { groups: fold.groups(), nextCursor: page.nextCursor };
}
