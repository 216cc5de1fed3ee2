import { scriptedUpstream, type UpstreamExchange } from "./upstream.ts";

/** One block of a message, as Anthropic's Messages API answers it. */
export type MessageBlock = { readonly type: string } & Readonly<Record<string, unknown>>;

/** An answer of a scripted Messages API: a message, or an error. */
export type ScriptedMessage =
  | {
      readonly content: readonly MessageBlock[];
      /** Default `tool_use` if a block is one, otherwise `end_turn`. */
      readonly stop_reason?: string;
      readonly stop_sequence?: string;
      /** Default: 10 input tokens and 5 output tokens. */
      readonly usage?: Readonly<Record<string, unknown>>;
    }
  | {
      readonly status: number;
      readonly error: { readonly type: string; readonly message: string };
    };

/** A request to a scripted Messages API. */
export interface MessagesRequest {
  readonly path: string;
  /** The request line and the headers, as text. */
  readonly head: string;
  readonly body: Readonly<Record<string, unknown>>;
}

/** A server with Anthropic's Messages API. */
export interface MessagesUpstream {
  /** `http://127.0.0.1:port/v1`: the `baseURL` of a provider. */
  readonly url: string;
  /** Every request that arrived, in order. */
  readonly requests: readonly MessagesRequest[];
  close(): Promise<void>;
}

/**
 * Starts a server with Anthropic's Messages API on a free local port. It answers each request as its `stream` asks, and
 * `/messages/count_tokens` with one token for every four characters of the body.
 */
export async function messagesUpstream(
  script: (request: MessagesRequest, number: number) => ScriptedMessage,
): Promise<MessagesUpstream> {
  const requests: MessagesRequest[] = [];
  const upstream = await scriptedUpstream(({ head, body, send }: UpstreamExchange) => {
    const path = head.split(" ", 2)[1] ?? "";
    const request = { path, head, body: JSON.parse(body) };
    requests.push(request);
    if (path.endsWith("/count_tokens"))
      return send(http(200, json, JSON.stringify({ input_tokens: Math.ceil(body.length / 4) })));
    const answer = script(request, requests.length);
    if ("error" in answer) {
      const error = { type: "error", error: answer.error };
      return send(http(answer.status, json, JSON.stringify(error)));
    }
    const message = messageOf(answer, String(request.body["model"]), requests.length);
    return request.body["stream"] === true
      ? send(http(200, "text/event-stream; charset=utf-8", messageStream(message)))
      : send(http(200, json, JSON.stringify(message)));
  });
  return { url: `${upstream.url}/v1`, requests, close: upstream.close };
}

const json = "application/json";

function http(status: number, contentType: string, body: string): string {
  const head = `HTTP/1.1 ${status} X\r\ncontent-type: ${contentType}`;
  return `${head}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

interface Message {
  readonly id: string;
  readonly type: "message";
  readonly role: "assistant";
  readonly model: string;
  readonly content: readonly MessageBlock[];
  readonly stop_reason: string;
  readonly stop_sequence: string | null;
  readonly usage: Readonly<Record<string, unknown>>;
}

function messageOf(
  answer: Extract<ScriptedMessage, { content: unknown }>,
  model: string,
  number: number,
): Message {
  const { content, stop_reason, stop_sequence = null, usage } = answer;
  const calls = content.some(({ type }) => type === "tool_use");
  return {
    id: `msg_${number}`,
    type: "message",
    role: "assistant",
    model,
    content,
    stop_reason: stop_reason ?? (calls ? "tool_use" : "end_turn"),
    stop_sequence,
    usage: usage ?? { input_tokens: 10, output_tokens: 5 },
  };
}

/** The stream of a message, with every text, thought and input in two pieces. */
function messageStream(message: Message): string {
  const { content, stop_reason, stop_sequence, usage } = message;
  const start = { ...message, content: [], stop_reason: null, stop_sequence: null };
  const events = [
    { type: "message_start", message: { ...start, usage: { ...usage, output_tokens: 1 } } },
    { type: "ping" },
    ...content.flatMap((block, index) => [
      { type: "content_block_start", index, content_block: emptied(block) },
      ...deltasOf(block).map((delta) => ({ type: "content_block_delta", index, delta })),
      { type: "content_block_stop", index },
    ]),
    { type: "message_delta", delta: { stop_reason, stop_sequence }, usage },
    { type: "message_stop" },
  ];
  return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
}

function emptied(block: MessageBlock): object {
  if (block.type === "text") return { ...block, text: "" };
  if (block.type === "thinking") return { ...block, thinking: "", signature: "" };
  return block.type === "tool_use" ? { ...block, input: {} } : block;
}

function deltasOf(block: MessageBlock): readonly object[] {
  if (block.type === "text")
    return halves(block["text"]).map((text) => ({ type: "text_delta", text }));
  if (block.type === "thinking")
    return [
      ...halves(block["thinking"]).map((thinking) => ({ type: "thinking_delta", thinking })),
      { type: "signature_delta", signature: block["signature"] },
    ];
  if (block.type !== "tool_use") return [];
  return halves(JSON.stringify(block["input"])).map((partial_json) => ({
    type: "input_json_delta",
    partial_json,
  }));
}

function halves(text: unknown): readonly string[] {
  const whole = String(text);
  const half = Math.floor(whole.length / 2);
  return [whole.slice(0, half), whole.slice(half)];
}
