/** Tokens of one attempt or one Step; total is always prompt plus completion (section 2.4). */
export interface Usage {
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly totalTokens: number;
  /** Present only when the provider reported it. */
  readonly cachedTokens?: number;
  /** Present only when the provider reported it. */
  readonly reasoningTokens?: number;
}

export const noUsage: Usage = { promptTokens: 0, completionTokens: 0, totalTokens: 0 };

/** Whether the provider counted the tokens or the gateway estimated them. */
export type UsageBasis = "reported" | "estimated";

/** Adds usages; a detail is present when any of them has it. */
export function addUsage(a: Usage, b: Usage): Usage {
  return {
    promptTokens: a.promptTokens + b.promptTokens,
    completionTokens: a.completionTokens + b.completionTokens,
    totalTokens: a.totalTokens + b.totalTokens,
    ...detail("cachedTokens", a.cachedTokens, b.cachedTokens),
    ...detail("reasoningTokens", a.reasoningTokens, b.reasoningTokens),
  };
}

function detail(
  name: "cachedTokens" | "reasoningTokens",
  a: number | undefined,
  b: number | undefined,
): Partial<Usage> {
  return a === undefined && b === undefined ? {} : { [name]: (a ?? 0) + (b ?? 0) };
}
