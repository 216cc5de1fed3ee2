import type { SummaryDimension, UsageGroup } from "../domain/usage-group.ts";
import type { StepQuery } from "./step-query.ts";

/**
 * The Steps and attempts to sum up. Members of an attempt (gateway, vendor, model, connection, host, `modelPatterns`) select
 * attempts, each by its own values. The others select Steps. An attempt matches `modelPatterns` if it matches any of them.
 */
export interface SummaryQuery extends StepQuery {
  readonly modelPatterns?: readonly string[];
  /** The dimensions to group by. Without any, everything is one group. */
  readonly by: readonly SummaryDimension[];
}

/** The sums over a range of Steps, and where the next range begins, or null at the end. */
export interface SummaryPage {
  readonly groups: readonly UsageGroup[];
  readonly nextCursor: string | null;
}
