/** What every chunk and the plain body carry alike. */
export interface ChatCompletionHead {
  readonly id: string;
  /** Seconds since the epoch. */
  readonly created: number;
  readonly model: string;
  /** Asked when the first of it is written; null where the provider says none. */
  readonly systemFingerprint: () => string | null;
  readonly sessionId: string;
  readonly turnId: string;
}
