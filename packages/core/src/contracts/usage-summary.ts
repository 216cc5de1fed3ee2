import type { SummaryDimension, UsageGroup } from "../domain/usage-group.ts";
import type { StepQuery } from "./step-query.ts";

/**
 * What to sum up. Members of the Step select Steps; members of an attempt select attempts, each by its own: gateway,
 * vendor, model, connection, host and `modelPatterns`, of which any may match.
 */
export interface SummaryQuery extends StepQuery {
  readonly modelPatterns?: readonly string[];
  /** What tells groups apart; none makes one group of all. */
  readonly by: readonly SummaryDimension[];
}

/** The sums over a stretch of Steps, and where the next begins; null at the end. */
export interface SummaryPage {
  readonly groups: readonly UsageGroup[];
  readonly nextCursor: string | null;
}
