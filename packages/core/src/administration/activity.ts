import type { OneOrMany } from "../domain/pattern.ts";
import type { PriceSource } from "../domain/price.ts";
import type { Step } from "../domain/step.ts";
import type { SummaryDimension } from "../domain/usage-group.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Line } from "../pipeline/line.ts";
import type { List, Paging } from "./list.ts";
import type { StepFilter } from "./step-filter.ts";
import { type StepRecord, toStepRecord } from "./step-records.ts";
import { listSteps } from "./steps.ts";
import { summarize, type UsageSummary } from "./summaries.ts";

/** A successful completion (section 1): what was used, at what cost, through which key. */
export interface ActivityRecord
  extends Omit<StepRecord, "attempts" | "outcome" | "reason" | "head" | "replyHead"> {
  readonly gateway: string;
  /** The model's vendor, as its id names it. */
  readonly provider: string;
  readonly host: string | null;
  readonly connection: "platform" | "customer";
  readonly priceSource: PriceSource | null;
  readonly durationMs: number;
  readonly timeToFirstTokenMs: number | null;
  readonly toolCalls: number;
}

/** The activity of an organization: a record for each successful completion. */
export interface Activity {
  /** Newest first. */
  list(filter: ActivityFilter, paging?: Paging): List<ActivityRecord>;
  /** As `steps.summarize`, of completed Steps alone. What failed costs money too: it adds up over Steps. */
  summarize(
    filter: ActivityFilter,
    by: OneOrMany<Exclude<SummaryDimension, "outcome">>,
  ): Promise<readonly UsageSummary[]>;
}

/** Which records: every member of a filter of Steps, except how they ended. */
export type ActivityFilter = Omit<StepFilter, "outcome">;

export function createActivity(line: Line, ready: () => Promise<void>): Activity {
  return {
    list: (filter, paging) =>
      listSteps(line, ready, {
        filter: () => completed(filter),
        paging,
        toRow: toActivityRecord,
      }),
    summarize: async (filter, by) => summarize(line, ready, { filter: completed(filter), by }),
  };
}

function completed(filter: ActivityFilter): StepFilter {
  if (!Object.hasOwn(filter, "outcome")) return { ...filter, outcome: "completed" };
  throw new GatewayError("invalid_argument", "Activity is what completed: it has no outcome.", {
    param: "outcome",
  });
}

function toActivityRecord(step: Step): ActivityRecord {
  const {
    attempts,
    outcome: _outcome,
    reason: _reason,
    head: _head,
    replyHead: _replyHead,
    ...record
  } = toStepRecord(step);
  const last = step.attempts.at(-1);
  const end = last?.end;
  return {
    ...record,
    gateway: last?.gateway ?? "",
    provider: last?.vendor ?? "",
    host: end?.host ?? null,
    connection: last?.connection ?? "platform",
    priceSource: end?.priceSource ?? null,
    durationMs: attempts.reduce((sum, attempt) => sum + (attempt.durationMs ?? 0), 0),
    timeToFirstTokenMs: end?.timeToFirstTokenMs ?? null,
    toolCalls: end?.toolCalls ?? 0,
  };
}
