/** Anything that answers a web `Request` with a `Response`. */
export interface FetchHandler {
  fetch(request: Request): Promise<Response>;
}

/** An answer before it becomes a `Response`: text, or a stream of text whose early end means that the client left. */
export interface GatewayAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | AsyncIterable<string>;
}

/** A handler whose answers can be written without building a `Response` first: what `createGateway` returns. */
export interface AnswerHandler {
  answer(request: Request): Promise<GatewayAnswer>;
}
