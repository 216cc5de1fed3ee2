/** The members that every chunk and the plain body have in common. */
export interface ChatCompletionHead {
  readonly id: string;
  /** Seconds since the epoch. */
  readonly created: number;
  readonly model: string;
  /** Called when the first chunk or the body is written. Empty if the provider reports none: the schema allows no null. */
  readonly systemFingerprint: () => string;
  readonly sessionId: string;
  readonly turnId: string;
}
