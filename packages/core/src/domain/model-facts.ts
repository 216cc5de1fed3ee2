/** Facts about a model other than its price. Each is null if neither the configuration nor the catalog states it. */
export interface ModelFacts {
  /** The most tokens the model can answer with, reasoning included. */
  readonly maxOutputTokens: number | null;
  /** Whether the model reasons before it answers, so it may write tokens that it doesn't show. */
  readonly reasons: boolean | null;
}

export const noFacts: ModelFacts = { maxOutputTokens: null, reasons: null };
