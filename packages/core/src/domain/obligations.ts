/** The conditions of a permit. The gateway meets them. */
export interface Obligations {
  /** Model ids to try in order if the first one fails. Each gets its own decision and its own holds. */
  readonly fallbacks?: readonly string[];
  /** A cap on the answer. It is always sent upstream. */
  readonly maxOutputTokens?: number;
  /** `digest` keeps hashes and counts of the transcript instead of its text. */
  readonly transcript?: "full" | "digest";
  /** The service tier to send, whichever one was requested. `default` is the standard one. */
  readonly serviceTier?: string;
  /** Requires the organization's own account. */
  readonly connection?: "customer";
}
