/** The bytes of an upstream's answer, in pieces. */
export const head = (...lines: readonly string[]): string =>
  `${["HTTP/1.1 200 OK", ...lines].join("\r\n")}\r\n\r\n`;

export const streamHead = head("content-type: text/event-stream", "transfer-encoding: chunked");
/** A stream that ends with its connection. */
export const openHead = head("content-type: text/event-stream", "connection: close");

export const chunked = (text: string): string =>
  `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
export const lastChunk = "0\r\n\r\n";

export const data = (chunk: object): string => `data: ${JSON.stringify(chunk)}\n\n`;
export const text = (content: string): string =>
  data({ id: "up-1", model: "vendor-model", choices: [{ index: 0, delta: { content } }] });
export const finish = data({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] });
export const usage = (prompt_tokens: number, completion_tokens: number): string =>
  data({ choices: [], usage: { prompt_tokens, completion_tokens } });
export const done = "data: [DONE]\n\n";

/** A complete, valid stream of server-sent events. */
export const goodEvents = text("Hello") + text(" there") + finish + usage(10, 5) + done;
export const goodStream = streamHead + chunked(goodEvents) + lastChunk;

/** A complete answer in one JSON body. */
export function plainAnswer(content: string, usage: object | null = defaultUsage): string {
  const body = {
    id: "up-1",
    model: "vendor-model",
    choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
    ...(usage === null ? {} : { usage }),
  };
  return json(200, body);
}

const defaultUsage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };

export function json(status: number, body: unknown, ...lines: readonly string[]): string {
  const bytes = typeof body === "string" ? body : JSON.stringify(body);
  const headers = ["content-type: application/json", ...lines];
  return `HTTP/1.1 ${status} Status\r\n${headers.join("\r\n")}\r\ncontent-length: ${Buffer.byteLength(bytes)}\r\n\r\n${bytes}`;
}

/** Whether the gateway asked for a stream. */
export const asksForStream = (body: string): boolean => body.includes('"stream":true');

/** The correct answer to a request, streamed if it asked for a stream. */
export const goodAnswer = (body: string): string =>
  asksForStream(body) ? goodStream : plainAnswer("Hello there");
