/** What is known of a model besides its price; each fact is null where neither configuration nor catalog states it. */
export interface ModelFacts {
  /** The most tokens the model can answer with, reasoning included. */
  readonly maxOutputTokens: number | null;
  /** Whether the model reasons before it answers, so that it can write tokens that nobody sees. */
  readonly reasons: boolean | null;
}

export const noFacts: ModelFacts = { maxOutputTokens: null, reasons: null };
