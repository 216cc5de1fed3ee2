import type { Usage } from "./usage.ts";

/** The usage and cost of a Step over all its attempts. The cost is null if the price of any attempt is unknown. */
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

/** The sum of all costs. Null if any of them is unknown, which is not zero. */
export function totalCost(costs: readonly (number | null)[]): number | null {
  return costs.reduce<number | null>(
    (sum, cost) => (sum === null || cost === null ? null : sum + cost),
    0,
  );
}
