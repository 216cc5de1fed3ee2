/** How long records are kept, in milliseconds. Null keeps them as long as the database exists. */
export interface Retention {
  /** Counted from the creation of a stored response. */
  readonly responses: number;
  /** Counted from the opening of a Step. */
  readonly activity: number | null;
  /** Counted from the last Step of a Session. */
  readonly transcripts: number | null;
}

export const defaultRetention: Retention = {
  responses: 2_592_000_000,
  activity: null,
  transcripts: null,
};
