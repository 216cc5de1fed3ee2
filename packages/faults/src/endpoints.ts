import { readStream } from "./read-answer.ts";
import { chatWire, embeddingsAnswer, type UpstreamWire, wires } from "./upstream-wires.ts";

/** An endpoint of the gateway, as a raw client uses it. */
export interface Endpoint {
  readonly name: string;
  readonly path: string;
  /** The body of a request, without its model. */
  body(content: string): object;
  /** The fields of a streamed request that ask for usage, which other endpoints always report. */
  readonly usageFields: object;
  /** Reads an answer, streamed or plain. */
  read(body: string): AnswerContent;
  /** Members of the error of an answer that the provider broke off. */
  readonly brokenOff: { readonly plain: object; readonly streamed: object };
  /** The event or comment that keeps a silent stream open. */
  readonly ping: string;
  /** The part of a stream that says that its answer is complete. */
  readonly completes: RegExp;
}

/** The content of an answer, as far as it came. */
export interface AnswerContent {
  readonly text: string;
  /** Null without one. */
  readonly error: Readonly<Record<string, unknown>> | null;
  /** Whether it says that it is complete. */
  readonly isComplete: boolean;
  /** Whether its end came, once and last. An error is the end of an answer, too. */
  readonly isEnded: boolean;
}

const user = (content: string) => [{ role: "user", content }];
const upstreamError = { code: "upstream_error" };
const comment = ": ping\n\n";

export const chatCompletions: Endpoint = {
  name: "POST /v1/chat/completions",
  path: "/v1/chat/completions",
  body: (content) => ({ messages: user(content) }),
  usageFields: { stream_options: { include_usage: true } },
  read(body) {
    if (!isStream(body)) {
      const { choices, error = null } = JSON.parse(body);
      const [{ message = {}, finish_reason } = {}] = choices ?? [];
      const isComplete = finish_reason === "stop";
      return { text: message.content ?? "", error, isComplete, isEnded: true };
    }
    const { text, error, finishReason, done } = readStream({ body });
    return { text, error, isComplete: finishReason === "stop", isEnded: done };
  },
  brokenOff: { plain: upstreamError, streamed: upstreamError },
  ping: comment,
  completes: /"finish_reason":"|\[DONE\]/,
};

export const responses: Endpoint = {
  name: "POST /v1/responses",
  path: "/v1/responses",
  body: (input) => ({ input }),
  usageFields: {},
  read(body) {
    const events = isStream(body) ? valuesIn(body).map((value) => JSON.parse(value)) : [];
    const ends = events.filter(({ type }) => /^response\.(?:completed|failed)$/.test(type));
    const whole = isStream(body) ? (ends[0]?.response ?? {}) : JSON.parse(body);
    const deltas = events.filter(({ type }) => type === "response.output_text.delta");
    const parts = [...(whole.output ?? [])].flatMap(({ content }) => content ?? []);
    return {
      text: isStream(body) ? textOf(deltas, "delta") : textOf(parts, "text"),
      error: whole.error ?? null,
      isComplete: whole.status === "completed",
      isEnded: !isStream(body) || (ends.length === 1 && events.at(-1) === ends[0]),
    };
  },
  brokenOff: { plain: upstreamError, streamed: { code: "server_error" } },
  ping: comment,
  completes: /response\.completed/,
};

const apiError = { type: "api_error" };

export const messages: Endpoint = {
  name: "POST /v1/messages",
  path: "/v1/messages",
  body: (content) => ({ messages: user(content), max_tokens: 1_000 }),
  usageFields: {},
  read(body) {
    if (!isStream(body)) {
      const { content = [], stop_reason, error = null } = JSON.parse(body);
      const isComplete = stop_reason === "end_turn";
      return { text: textOf(content, "text"), error, isComplete, isEnded: true };
    }
    const events = valuesIn(body).map((value) => JSON.parse(value));
    const ends = events.filter(({ type }) => type === "message_stop" || type === "error");
    const deltas = events.flatMap(({ type, delta }) =>
      type === "content_block_delta" ? [delta] : [],
    );
    return {
      text: textOf(deltas, "text"),
      error: ends[0]?.error ?? null,
      isComplete: events.some(({ delta }) => delta?.stop_reason === "end_turn"),
      isEnded: ends.length === 1 && events.at(-1) === ends[0],
    };
  },
  brokenOff: { plain: apiError, streamed: apiError },
  ping: "event: ping\n",
  completes: /message_delta|message_stop/,
};

export const embeddings: Endpoint = {
  name: "POST /v1/embeddings",
  path: "/v1/embeddings",
  body: (content) => ({ input: [content, "Again"] }),
  usageFields: {},
  read(body) {
    const { object, error = null } = JSON.parse(body);
    return { text: "", error, isComplete: object === "list", isEnded: true };
  },
  brokenOff: { plain: upstreamError, streamed: upstreamError },
  ping: comment,
  completes: /"object":"list"/,
};

/** The parts of any endpoint's stream that say that its answer is complete. */
export const completes = new RegExp(
  [chatCompletions, responses, messages].map((endpoint) => endpoint.completes.source).join("|"),
);

/** An endpoint, and the API of the upstream that answers it. */
export interface Route {
  readonly name: string;
  readonly endpoint: Endpoint;
  readonly wire: UpstreamWire;
  /** A whole answer of the upstream in one body, with its head. Embeddings have no text and no output. */
  readonly plain: UpstreamWire["plain"];
}

const route = (
  endpoint: Endpoint,
  wire: UpstreamWire,
  plain: UpstreamWire["plain"] = wire.plain,
): Route => ({ name: `${endpoint.name} over ${wire.name}`, endpoint, wire, plain });

export const chatRoute: Route = route(chatCompletions, chatWire);

/** Every endpoint that holds conversations, over every kind of upstream. */
export const conversations: readonly Route[] = [chatCompletions, responses, messages].flatMap(
  (endpoint) => wires.map((wire) => route(endpoint, wire)),
);

/** The same, and embeddings, which only a Chat Completions upstream has. */
export const routes: readonly Route[] = [
  ...conversations,
  route(embeddings, chatWire, (_, input) => embeddingsAnswer(input)),
];

function isStream(body: string): boolean {
  return /^(?:event|data|:)/.test(body);
}

function valuesIn(body: string): readonly string[] {
  const lines = body.split("\n").filter((line) => line.startsWith("data: "));
  return lines.map((line) => line.slice("data: ".length));
}

function textOf(parts: readonly Readonly<Record<string, string>>[], member: string): string {
  return parts.map((part) => part[member] ?? "").join("");
}
