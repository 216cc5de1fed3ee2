/** What a handler answers, before it becomes a `Response`. */
export interface Answer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Text, or a stream of whole events; ending the iteration early means the client left. */
  readonly body: string | AsyncIterable<string>;
}
