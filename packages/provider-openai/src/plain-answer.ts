import { isUtf8 } from "node:buffer";
import type { CompletionEvent, Json } from "@tollgate/core/provider";
import type { Answer } from "./answer.ts";
import { errorIn } from "./error-answer.ts";
import { invalidAnswer } from "./failures.ts";
import { isList, isObject, type JsonObject, membersOf } from "./json.ts";

/** Reads an answer from the bytes of a whole body: the same events, by the same code, as from a stream. */
export function readPlainAnswer(
  chunks: readonly Uint8Array[],
  answer: Answer,
  into: CompletionEvent[],
): void {
  const body = parse(chunks);
  answer.add(errorIn(body) === null ? asChunk(body) : body, into);
  answer.finish(into);
}

function parse(chunks: readonly Uint8Array[]): Json {
  const bytes = Buffer.concat(chunks);
  if (bytes.length === 0) throw invalidAnswer("empty_answer", "The provider's answer is empty.");
  try {
    return JSON.parse(textOf(bytes));
  } catch {
    throw invalidAnswer("invalid_json", "The provider's answer is not JSON.");
  }
}

/** The text of UTF-8 bytes without a byte order mark; a decoder made for one answer would cost more than all else here. */
function textOf(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new SyntaxError("not UTF-8");
  const text = bytes.toString("utf8");
  return text.startsWith("\uFEFF") ? text.slice(1) : text;
}

function asChunk(body: Json): Json {
  const { choices } = membersOf(body);
  if (!isObject(body) || !isList(choices) || choices.length === 0) throw noCompletion();
  return { ...body, choices: choices.map(asDelta) };
}

function asDelta(choice: Json): Json {
  const { message, ...rest } = membersOf(choice);
  if (!isObject(message)) throw noCompletion();
  return { ...rest, delta: withIndexes(message) };
}

/** The calls of a whole message stand in their order and carry no index. */
function withIndexes(message: JsonObject): Json {
  const { tool_calls } = message;
  if (!isList(tool_calls)) return message;
  return {
    ...message,
    tool_calls: tool_calls.map((call, index) => (isObject(call) ? { ...call, index } : call)),
  };
}

function noCompletion(): Error {
  return invalidAnswer("invalid_answer", "The provider's answer holds no completion.");
}
