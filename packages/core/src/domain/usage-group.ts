import type { UsageDetails } from "./usage.ts";

/** A dimension by which Steps and their attempts can be summed up. */
export type SummaryDimension =
  | "organization"
  | "user"
  | "key"
  | "session"
  | "source"
  | "dataClass"
  | "day"
  | "hour"
  | "outcome"
  | "gateway"
  | "vendor"
  | "model"
  | "connection"
  | "host";

/** The usage and cost of several Steps. Every figure except `steps` is a sum over attempts. */
export interface UsageSums extends Required<UsageDetails> {
  /** Steps with an attempt in the group. A Step that fell back to another model can count in two groups. */
  readonly steps: number;
  readonly attempts: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly totalTokens: number;
  /** Nanodollars, without the attempts that `unknownCosts` counts. */
  readonly costNanoUsd: number;
  /** Attempts without a known price. Their cost is missing from the sum. */
  readonly unknownCosts: number;
  /** Attempts whose usage or cost is partly an estimate. */
  readonly estimated: number;
  readonly toolCalls: number;
  /** Milliseconds. */
  readonly durationMs: number;
}

/** One group: its value of each requested dimension, or null without one, and its sums. */
export interface UsageGroup {
  readonly values: readonly (string | null)[];
  /** In groups by key, the label that the key has in its newest Step. */
  readonly keyLabel: string | null;
  readonly sums: UsageSums;
  readonly latencies: Latencies;
}

/** How many ended attempts took how long. Each list has 20 counts; see `latencyBounds`. */
export interface Latencies {
  readonly duration: readonly number[];
  /** Only attempts with output. */
  readonly timeToFirstToken: readonly number[];
}
