/** A request of a history, so that it can be made again. */
export interface Asked {
  readonly secret: string;
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
}

/** An answer as its client saw it, byte by byte. */
export interface Seen {
  readonly status: number;
  readonly headers: readonly (readonly [string, string])[];
  /** What came of the body; an answer that broke off ends with how. */
  readonly body: string;
}

export function requestOf({ secret, path, body }: Asked, signal?: AbortSignal): Request {
  return new Request(`http://in-process/v1/${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${secret}` },
    body: JSON.stringify(body),
    ...(signal === undefined ? {} : { signal }),
  });
}

export function requestWithoutBody(method: string, path: string, secret: string): Request {
  return new Request(`http://in-process/v1/${path}`, {
    method,
    headers: { authorization: `Bearer ${secret}` },
  });
}

/** Reads an answer to its end, however it ends. */
export async function seen(response: Response): Promise<Seen> {
  const watched = watch();
  await watched.read(response);
  return watched.seen();
}

/** What has been seen of an answer so far, at any moment. */
export function seenWhile(answer: Promise<Response>): () => Seen {
  const watched = watch();
  void answer.then(watched.read, watched.brokeOff);
  return watched.seen;
}

function watch() {
  let status = 0;
  let headers: Seen["headers"] = [];
  let body = "";
  const brokeOff = (error: unknown): void => {
    body += `[broken off: ${error instanceof Error ? error.name : "unknown"}]`;
  };
  return {
    brokeOff,
    seen: (): Seen => ({ status, headers, body }),
    async read(response: Response): Promise<void> {
      status = response.status;
      headers = [...response.headers].sort(([one], [other]) => (one < other ? -1 : 1));
      const decoder = new TextDecoder();
      try {
        for await (const piece of response.body ?? [])
          body += decoder.decode(piece, { stream: true });
      } catch (error) {
        brokeOff(error);
      }
    },
  };
}

/** What a whole answer tells that later requests go on with; null of any other. */
export interface Told {
  readonly id: string;
  readonly sessionId: string;
  /** The message of a chat completion, as its client sends it back. */
  readonly message: unknown;
}

export function toldBy({ status, body }: Seen): Told | null {
  if (status !== 200) return null;
  const event = /"type":"response\.(?:completed|incomplete)"/.test(body)
    ? body
        .split("\n")
        .findLast((line) => line.startsWith("data: {"))
        ?.slice(6)
    : body;
  if (event === undefined || event.includes("data: ")) return streamedTold(body);
  return readTold(record(JSON.parse(event)));
}

function readTold(value: Readonly<Record<string, unknown>>): Told | null {
  const told = "response" in value ? record(value["response"]) : value;
  const choices: unknown = told["choices"];
  const message = Array.isArray(choices) ? record(choices[0])["message"] : null;
  const { id, session_id } = told;
  return typeof id === "string" && typeof session_id === "string"
    ? { id, sessionId: session_id, message }
    : null;
}

/** A streamed chat completion that came to its end: its text put together again. */
function streamedTold(body: string): Told | null {
  if (!body.endsWith("data: [DONE]\n\n") || body.includes('"error":')) return null;
  const chunks = body
    .split("\n\n")
    .filter((event) => event.startsWith("data: {"))
    .map((event) => record(JSON.parse(event.slice(6))));
  const first = chunks[0] ?? {};
  const deltas = chunks.flatMap(({ choices }) =>
    Array.isArray(choices) ? choices.map((choice) => record(record(choice)["delta"])) : [],
  );
  const content = deltas.map((delta) => delta["content"] ?? "").join("");
  const { id, session_id } = first;
  return typeof id === "string" && typeof session_id === "string"
    ? { id, sessionId: session_id, message: { role: "assistant", content } }
    : null;
}

export function record(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}
