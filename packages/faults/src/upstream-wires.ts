import type { UpstreamExchange } from "@tollgate/testing";
import {
  asksForStream,
  chunked,
  data,
  done,
  finish,
  goodAnswer,
  json,
  lastChunk,
  plainAnswer,
  streamHead,
  text,
  usage,
} from "./upstream-bytes.ts";

/** The bytes of an upstream's answers in one of the APIs that upstreams have. Without figures, an answer has no usage. */
export interface UpstreamWire {
  readonly name: string;
  /** The model that the gateway asks through this API. */
  readonly model: string;
  /** The events of a stream before its text, with the usage so far. */
  opening(input?: number, output?: number): string;
  text(content: string): string;
  /** A thought of the model, before, between or after texts. */
  reasoning(content: string): string;
  /** An event with the usage so far, in the middle of a stream. */
  usage(input: number, output: number): string;
  /** The events after the text of a complete answer. */
  ending(input?: number, output?: number): string;
  /** The beginning of a tool call, in the middle of a stream. */
  toolCall(index: number, id: string, name: string): string;
  /** More of the input of a tool call that has begun. */
  toolInput(index: number, json: string): string;
  /** Ends of an answer that never says why it stopped. */
  readonly unfinished: readonly string[];
  /** Events with an error that quotes this text. */
  failures(quoted: string): readonly string[];
  /** A whole answer in one body, with its head. */
  plain(content: string, input?: number, output?: number): string;
}

/** The part of an answer for its usage, if it has any. */
const ifAny = <Part>(of: (input: number, output: number) => Part, none: Part) => {
  return (input?: number, output = 0): Part => (input === undefined ? none : of(input, output));
};

const chatUsage = ifAny(usage, "");
const plainUsage = ifAny<object | null>(
  (prompt_tokens, completion_tokens) => ({ prompt_tokens, completion_tokens }),
  null,
);
const chatCall = (index: number, call: object): string =>
  data({ choices: [{ index: 0, delta: { tool_calls: [{ index, ...call }] } }] });

export const chatWire: UpstreamWire = {
  name: "a Chat Completions upstream",
  model: "up/vendor/model",
  opening: chatUsage,
  text,
  reasoning: (reasoning_content) => data({ choices: [{ index: 0, delta: { reasoning_content } }] }),
  usage,
  ending: (input, output) => finish + chatUsage(input, output) + done,
  toolCall: (index, id, name) => chatCall(index, { id, function: { name } }),
  toolInput: (index, json) => chatCall(index, { function: { arguments: json } }),
  unfinished: ["", done, usage(1, 2) + done],
  failures: (message) => [
    data({ error: { message, code: "server_error" } }),
    `event: error\n${data({ message })}`,
  ],
  plain: (content, input, output) => plainAnswer(content, plainUsage(input, output)),
};

const named = (event: { readonly type: string }): string => `event: ${event.type}\n${data(event)}`;
const error = (message: string) => ({
  type: "error",
  error: { type: "api_error", message },
});
const message = { id: "msg_1", type: "message", role: "assistant", model: "vendor-model" };
const stopped = { stop_reason: "end_turn", stop_sequence: null };
const blockStop = named({ type: "content_block_stop", ...{ index: 0 } });
const delta = (ended: object, usage?: object): string =>
  named({ type: "message_delta", ...{ delta: ended, usage } });
const used = ifAny<object | undefined>(
  (input_tokens, output_tokens) => ({ input_tokens, output_tokens }),
  undefined,
);
/** The first block of a stream is its text, the second its thoughts. */
const blockOfThoughts = 1;
const blockOfCall = (index: number): number => index + 2;

export const messagesWire: UpstreamWire = {
  name: "an Anthropic upstream",
  model: "claude/vendor/model",
  opening: (input, output) => {
    const begun = { ...message, content: [], stop_reason: null, usage: used(input, output) };
    const block = { index: 0, content_block: { type: "text", text: "" } };
    return (
      named({ type: "message_start", ...{ message: begun } }) +
      named({ type: "content_block_start", ...block })
    );
  },
  text: (content) => {
    const piece = { index: 0, delta: { type: "text_delta", text: content } };
    return named({ type: "content_block_delta", ...piece });
  },
  reasoning: (thinking) => {
    const block = { index: blockOfThoughts, content_block: { type: "thinking", thinking } };
    return named({ type: "content_block_start", ...block });
  },
  usage: (input, output) => delta({ stop_reason: null }, used(input, output)),
  ending: (input, output) =>
    blockStop + delta(stopped, used(input, output)) + named({ type: "message_stop" }),
  toolCall: (at, id, name) => {
    const block = { index: blockOfCall(at), content_block: { type: "tool_use", id, name } };
    return named({ type: "content_block_start", ...block });
  },
  toolInput: (at, partial_json) => {
    const piece = { index: blockOfCall(at), delta: { type: "input_json_delta", partial_json } };
    return named({ type: "content_block_delta", ...piece });
  },
  unfinished: [
    "",
    blockStop,
    blockStop + named({ type: "message_stop" }),
    blockStop + delta({ stop_reason: null }, used(1, 2)) + named({ type: "message_stop" }),
  ],
  failures: (quoted) => [named(error(quoted)), data(error(quoted))],
  plain: (content, input, output) =>
    json(200, {
      ...message,
      ...stopped,
      content: [{ type: "text", text: content }],
      usage: used(input, output),
    }),
};

export const wires: readonly UpstreamWire[] = [chatWire, messagesWire];

/** A whole answer with one vector for each of two texts. */
export const embeddingsAnswer = (prompt_tokens?: number): string =>
  json(200, {
    object: "list",
    model: "vendor-model",
    data: [0, 1].map((index) => ({ object: "embedding", index, embedding: [index, 0.5] })),
    ...(prompt_tokens === undefined
      ? {}
      : { usage: { prompt_tokens, total_tokens: prompt_tokens } }),
  });

const pathOf = ({ head }: Pick<UpstreamExchange, "head">): string | undefined =>
  head.split(" ", 2)[1];

/** The API that a request uses. */
export const wireOf = (exchange: Pick<UpstreamExchange, "head">): UpstreamWire =>
  pathOf(exchange) === "/v1/messages" ? messagesWire : chatWire;

/** The correct answer to a request, by the path that it came to. */
export function answerTo({ head, body }: Pick<UpstreamExchange, "head" | "body">): string {
  if (pathOf({ head }) === "/v1/embeddings") return embeddingsAnswer(10);
  if (wireOf({ head }) === chatWire) return goodAnswer(body);
  const { opening, text: said, ending, plain } = messagesWire;
  return asksForStream(body)
    ? streamHead + chunked(opening(10, 1) + said("Hello there") + ending(10, 5)) + lastChunk
    : plain("Hello there", 10, 5);
}
