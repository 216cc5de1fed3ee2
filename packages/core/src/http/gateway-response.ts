/** What a handler answers, before it becomes a `Response`. */
export interface GatewayResponse {
  readonly status: number;
  /** Names in lower case. Of this answer alone: it gets more of them on its way. */
  readonly headers: Record<string, string>;
  readonly body: string | StreamBody;
}

/** A body that is written while it comes into being. */
export interface StreamBody {
  /** Begins to write to the sink, unless the client has left. Call it at most once. */
  start(sink: TextSink): void;
  /** The client left: nothing more is written. Call it whether the body has started or not. */
  leave(): void;
}

/** Where a body goes: to a socket, or into a web stream. */
export interface TextSink {
  /** Takes whole events. Null if it can take more at once; else a promise that resolves when it can, and never rejects. */
  write(text: string): Promise<void> | null;
  /** The body is complete. */
  end(): void;
  /** The body broke off, and must not look complete. */
  fail(thrown: unknown): void;
}
