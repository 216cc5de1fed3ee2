import type { PriceSource } from "../domain/price.ts";
import type { Step } from "../domain/step.ts";
import { type StepRecord, toStepRecord } from "./step-records.ts";

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

export function toActivityRecord(step: Step): ActivityRecord {
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
