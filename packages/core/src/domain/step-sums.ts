import type { Usage } from "./usage.ts";

/** What a Step used and cost over all its attempts; the cost is null when the price of one is not known. */
export interface StepSums {
  readonly totalTokens: number;
  readonly costNanoUsd: number | null;
}

export function sumsOf(
  attempts: readonly { readonly usage: Usage; readonly costNanoUsd: number | null }[],
): StepSums {
  return {
    totalTokens: attempts.reduce((sum, { usage }) => sum + usage.totalTokens, 0),
    costNanoUsd: totalCost(attempts.map(({ costNanoUsd }) => costNanoUsd)),
  };
}

/** Null when one of them is not known, which is not zero. */
export function totalCost(costs: readonly (number | null)[]): number | null {
  return costs.reduce<number | null>(
    (sum, cost) => (sum === null || cost === null ? null : sum + cost),
    0,
  );
}
