/** An HTTP answer, as read by a client that checks every byte. */
export interface ReadAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Without its transfer encoding. */
  readonly body: string;
  /** Whether the body came to the end that its framing announces. */
  readonly whole: boolean;
}

/** Reads the one answer in the bytes of a connection. */
export function readAnswer(received: string): ReadAnswer {
  const end = received.indexOf("\r\n\r\n");
  const [first = "", ...lines] = received.slice(0, end).split("\r\n");
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(first)?.[1]);
  if (end === -1 || Number.isNaN(status)) throw new Error(`Not an HTTP answer: ${received}`);
  const headers = Object.fromEntries(lines.map(headerOf));
  const rest = Buffer.from(received.slice(end + 4));
  if (headers["transfer-encoding"] === "chunked") return { status, headers, ...dechunked(rest) };
  const whole = rest.length === Number(headers["content-length"]);
  return { status, headers, body: rest.toString(), whole };
}

function headerOf(line: string): readonly [string, string] {
  const colon = line.indexOf(":");
  return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
}

function dechunked(bytes: Buffer): { readonly body: string; readonly whole: boolean } {
  const parts: Buffer[] = [];
  let rest = bytes;
  for (;;) {
    const end = rest.indexOf("\r\n");
    const size = Number.parseInt(rest.subarray(0, Math.max(end, 0)).toString(), 16);
    if (end === -1 || Number.isNaN(size)) return { body: joined(parts), whole: false };
    if (size === 0) return { body: joined(parts), whole: true };
    parts.push(rest.subarray(end + 2, end + 2 + size));
    rest = rest.subarray(end + 4 + size);
  }
}

const joined = (parts: readonly Buffer[]): string => Buffer.concat(parts).toString();

/** The content of a streamed chat completion. */
export interface ReadStream {
  readonly text: string;
  readonly finishReason: string | null;
  /** The error event's error; null without one. */
  readonly error: { readonly [name: string]: unknown } | null;
  /** Whether `[DONE]` came, once and last. */
  readonly done: boolean;
}

/** Reads the events of a streamed chat completion. */
export function readStream({ body }: Pick<ReadAnswer, "body">): ReadStream {
  const events = body.split("\n\n").filter((event) => event.startsWith("data: "));
  const values = events.map((event) => event.slice(6));
  const chunks = values.filter((value) => value !== "[DONE]").map((value) => JSON.parse(value));
  const choices = chunks.flatMap((chunk) => chunk.choices ?? []);
  return {
    text: choices.map((choice) => choice.delta.content ?? "").join(""),
    finishReason: choices.map((choice) => choice.finish_reason).find(Boolean) ?? null,
    error: chunks.find((chunk) => chunk.error)?.error ?? null,
    done: values.indexOf("[DONE]") === values.length - 1 && values.length > 0,
  };
}
