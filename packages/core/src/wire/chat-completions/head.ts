/** What every chunk and the plain body carry alike. */
export interface ChatCompletionHead {
  readonly id: string;
  /** Seconds since the epoch. */
  readonly created: number;
  readonly model: string;
  readonly sessionId: string;
  readonly turnId: string;
}
