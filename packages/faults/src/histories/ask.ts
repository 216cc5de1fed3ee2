/** A request of a history, kept so that it can be sent again. */
export interface HistoryRequest {
  readonly secret: string;
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
}

/** An answer as its client saw it, byte by byte. */
export interface ReceivedAnswer {
  readonly status: number;
  readonly headers: readonly (readonly [string, string])[];
  /** The body as received; an answer that broke off ends with the reason. */
  readonly body: string;
}

export function requestOf({ secret, path, body }: HistoryRequest, signal?: AbortSignal): Request {
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

/** Reads an answer to its end, whatever the end is. */
export async function receive(response: Response): Promise<ReceivedAnswer> {
  const receiver = createReceiver();
  await receiver.read(response);
  return receiver.seen();
}

/** The part of an answer received so far. */
export function receiveInBackground(answer: Promise<Response>): () => ReceivedAnswer {
  const receiver = createReceiver();
  void answer.then(receiver.read, receiver.brokeOff);
  return receiver.seen;
}

function createReceiver() {
  let status = 0;
  let headers: ReceivedAnswer["headers"] = [];
  let body = "";
  const fail = (error: unknown): void => {
    body += `[broken off: ${error instanceof Error ? error.name : "unknown"}]`;
  };
  return {
    brokeOff: fail,
    seen: (): ReceivedAnswer => ({ status, headers, body }),
    async read(response: Response): Promise<void> {
      status = response.status;
      headers = [...response.headers].sort(([a], [b]) => (a < b ? -1 : 1));
      const decoder = new TextDecoder();
      try {
        for await (const piece of response.body ?? [])
          body += decoder.decode(piece, { stream: true });
      } catch (error) {
        fail(error);
      }
    },
  };
}

/** The decision of an answer that arrived whole and without an error, which names its Step; null for any other answer. */
export function decisionOfWhole(answer: ReceivedAnswer): string | null {
  const { headers, body } = answer;
  if (body.includes("[broken off:") || body.includes('"error":{')) return null;
  const isWhole = body.startsWith('{"object":"list"') || referenceIn(answer) !== null;
  const [, id = null] = headers.find(([name]) => name === decisionHeader) ?? [];
  return isWhole ? id : null;
}

const decisionHeader = "x-service-policy-decision-id";

/** The parts of a complete answer that later requests continue from; null for any other answer. */
export interface AnswerReference {
  readonly id: string;
  readonly sessionId: string;
  /** The message of a chat completion or of a plain answer of Messages, as its client sends it back. */
  readonly message: unknown;
}

export function referenceIn({ status, body }: ReceivedAnswer): AnswerReference | null {
  if (status !== 200) return null;
  const message = /^event: message_start\ndata: (.*)$/m.exec(body)?.[1];
  if (message !== undefined)
    return body.endsWith('data: {"type":"message_stop"}\n\n')
      ? readReference(record(record(JSON.parse(message))["message"]))
      : null;
  const event = /"type":"response\.(?:completed|incomplete)"/.test(body)
    ? body
        .split("\n")
        .findLast((line) => line.startsWith("data: {"))
        ?.slice(6)
    : body;
  if (event === undefined || event.includes("data: ")) return streamedReference(body);
  return readReference(record(JSON.parse(event)));
}

function readReference(value: Readonly<Record<string, unknown>>): AnswerReference | null {
  const body = "response" in value ? record(value["response"]) : value;
  const { id, session_id, choices, content } = body;
  const said = Array.isArray(content) ? { role: "assistant", content } : null;
  const message = Array.isArray(choices) ? record(choices[0])["message"] : said;
  return typeof id === "string" && typeof session_id === "string"
    ? { id, sessionId: session_id, message }
    : null;
}

/** A streamed chat completion that reached its end, with its text joined. */
function streamedReference(body: string): AnswerReference | null {
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
