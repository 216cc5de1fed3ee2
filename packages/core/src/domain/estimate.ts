import type { CompletionRequest } from "./completion-request.ts";
import type { EmbeddingRequest } from "./embedding.ts";
import type { Message, ProviderState } from "./message.ts";
import { stateBytes } from "./provider-state.ts";

const bytesPerToken = 3;
const tokensPerMessage = 8;
/** Claude's own instructions on tools or a schema, of 810 tokens. Other models have shorter ones. */
const bytesForTools = 2_430;

/** An upper estimate of the tokens in this many UTF-8 bytes of text, for holds and for usage that isn't reported. */
export function tokensOfBytes(bytes: number): number {
  return Math.ceil(bytes / bytesPerToken);
}

/** The size of messages: UTF-8 bytes of text, names, ids and provider state, and images. */
export interface MessagesSize {
  readonly bytes: number;
  readonly images: number;
}

/** The size of messages. `known` is the size of messages that they begin with, which are not measured again. */
export function sizeOfMessages(
  messages: readonly Message[],
  known: { readonly messages: readonly Message[]; readonly size: MessagesSize } | null = null,
): MessagesSize {
  let { bytes, images } = known?.size ?? nothing;
  for (let at = known?.messages.length ?? 0; at < messages.length; at++) {
    const message = messages[at];
    if (!message) break;
    bytes += textBytes(message);
    images += imageCount(message);
  }
  return { bytes, images };
}

const nothing = { bytes: 0, images: 0 };

/**
 * Upper estimate of a request's prompt tokens: its messages, tools and schemas, 8 per message, 810 if it has tools or a
 * schema, and a fixed cost per image.
 */
export function estimateInput(
  request: CompletionRequest,
  size: MessagesSize,
  imageTokens: number,
): number {
  let { bytes } = size;
  const { tools, responseFormat: format } = request;
  // Models without structured output get the schema as a tool.
  const schema = format?.type === "json_schema" && format;
  if (tools?.length || schema)
    bytes += bytesForTools + Buffer.byteLength(JSON.stringify([tools, schema]));
  const ofMessages = tokensPerMessage * request.messages.length;
  return tokensOfBytes(bytes) + ofMessages + imageTokens * size.images;
}

/** Upper estimate of the tokens to embed: the ids themselves, or texts at the same rate as messages. */
export function estimateEmbedding({ inputs }: EmbeddingRequest): number {
  let tokens = 0;
  for (const input of inputs)
    tokens +=
      typeof input === "string"
        ? tokensOfBytes(Buffer.byteLength(input)) + tokensPerMessage
        : input.length;
  return tokens;
}

function imageCount(message: Message): number {
  const { role, content } = message;
  if ((role !== "user" && role !== "tool") || typeof content === "string") return 0;
  return content.reduce<number>((count, part) => count + (part.type === "image_url" ? 1 : 0), 0);
}

function textBytes(message: Message): number {
  let bytes = contentBytes(message.content) + bytesOf(message.state);
  if ("name" in message && message.name !== undefined) bytes += Buffer.byteLength(message.name);
  if (message.role === "tool") bytes += Buffer.byteLength(message.tool_call_id);
  if (message.role === "assistant") {
    if (message.refusal) bytes += Buffer.byteLength(message.refusal);
    for (const call of message.tool_calls ?? []) {
      const { name, arguments: given } = call.function;
      bytes += Buffer.byteLength(call.id) + Buffer.byteLength(name) + Buffer.byteLength(given);
      bytes += bytesOf(call.state);
    }
  }
  return bytes;
}

function contentBytes(content: Message["content"]): number {
  if (content == null) return 0;
  if (typeof content === "string") return Buffer.byteLength(content);
  let bytes = 0;
  for (const part of content) {
    if (part.type === "text") bytes += Buffer.byteLength(part.text);
    else if (part.type === "refusal") bytes += Buffer.byteLength(part.refusal);
    bytes += bytesOf(part.state);
  }
  return bytes;
}

function bytesOf(state: ProviderState | undefined): number {
  return state === undefined ? 0 : stateBytes(state.fields);
}
