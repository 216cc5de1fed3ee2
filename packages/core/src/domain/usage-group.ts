/** What Steps and their attempts can be summed up by. */
export type SummaryDimension =
  | "organization"
  | "user"
  | "key"
  | "session"
  | "source"
  | "dataClass"
  | "day"
  | "outcome"
  | "gateway"
  | "vendor"
  | "model"
  | "connection"
  | "host";

/** What Steps used and cost together; every figure is a sum over attempts, except `steps`. */
export interface UsageSums {
  /** Steps with an attempt in the group: one that fell back to another model counts with both. */
  readonly steps: number;
  readonly attempts: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly totalTokens: number;
  readonly cachedTokens: number;
  readonly reasoningTokens: number;
  readonly cacheWriteTokens: number;
  readonly cacheWrite1hTokens: number;
  readonly audioInputTokens: number;
  readonly audioOutputTokens: number;
  readonly imageInputTokens: number;
  readonly imageOutputTokens: number;
  /** Nanodollars, without the attempts that `unknownCosts` counts. */
  readonly costNanoUsd: number;
  /** Attempts without a known price: what they cost is not in the sum. */
  readonly unknownCosts: number;
  /** Attempts whose usage or cost is in part an estimate. */
  readonly estimated: number;
  readonly toolCalls: number;
  /** Milliseconds. */
  readonly durationMs: number;
}

/** One group: its value of each dimension asked for, null where there is none, and its sums. */
export interface UsageGroup {
  readonly values: readonly (string | null)[];
  /** The label of its newest Step's key, in groups by key. */
  readonly keyLabel: string | null;
  readonly sums: UsageSums;
}
