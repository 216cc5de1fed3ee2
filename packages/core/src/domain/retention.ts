/** How long records are kept, in milliseconds; null for as long as the database exists. */
export interface Retention {
  /** From the creation of a stored response. */
  readonly responses: number;
  /** From the opening of a Step. */
  readonly activity: number | null;
  /** From the last Step of a Session. */
  readonly transcripts: number | null;
}

export const defaultRetention: Retention = {
  responses: 2_592_000_000,
  activity: null,
  transcripts: null,
};
