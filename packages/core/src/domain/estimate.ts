import type { CompletionRequest } from "./completion-request.ts";
import type { Message, ProviderState } from "./message.ts";
import { stateBytes } from "./provider-state.ts";

const bytesPerToken = 3;
const tokensPerMessage = 8;

/** Tokens that text of so many UTF-8 bytes can have: an upper estimate, used for holds and where a provider reports nothing. */
export function tokensOfBytes(bytes: number): number {
  return Math.ceil(bytes / bytesPerToken);
}

/** Upper estimate of a request's prompt tokens: its text, provider state, tools and schemas, 8 per message and a fixed cost per image. */
export function estimateInput(request: CompletionRequest, imageTokens: number): number {
  let bytes = 0;
  let images = 0;
  for (const message of request.messages) {
    bytes += textBytes(message);
    images += imageCount(message);
  }
  if (request.tools) bytes += Buffer.byteLength(JSON.stringify(request.tools));
  if (request.responseFormat?.type === "json_schema") {
    bytes += Buffer.byteLength(JSON.stringify(request.responseFormat));
  }
  return tokensOfBytes(bytes) + tokensPerMessage * request.messages.length + imageTokens * images;
}

/** How many images a request holds. */
export function countImages(request: CompletionRequest): number {
  return request.messages.reduce((count, message) => count + imageCount(message), 0);
}

function imageCount(message: Message): number {
  const { role, content } = message;
  if ((role !== "user" && role !== "tool") || typeof content === "string") return 0;
  return content.reduce<number>((count, part) => count + (part.type === "image_url" ? 1 : 0), 0);
}

function textBytes(message: Message): number {
  let bytes = contentBytes(message.content) + bytesOf(message.state);
  if ("name" in message && message.name !== undefined) bytes += Buffer.byteLength(message.name);
  if (message.role === "assistant") {
    if (message.refusal) bytes += Buffer.byteLength(message.refusal);
    for (const call of message.tool_calls ?? []) {
      bytes += Buffer.byteLength(call.function.name) + Buffer.byteLength(call.function.arguments);
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
