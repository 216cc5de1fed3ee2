import { isUtf8 } from "node:buffer";
import { type CompletionEvent, isTooMuchJson, type Json, otherWork } from "@tollgate/core/provider";
import type { Answer } from "./answer.ts";
import { errorIn } from "./error-answer.ts";
import { invalidAnswer, tooManyValues } from "./failures.ts";
import { isList, isObject, type JsonObject, membersOf } from "./json.ts";

/** Reads an answer from the bytes of a whole body: the same events, by the same code, as from a stream. */
export function readPlainAnswer(bytes: Buffer, answer: Answer, into: CompletionEvent[]): void {
  const text = textOf(bytes);
  if (isTooMuchJson(text)) throw tooManyValues();
  addBody(parse(text), answer, into);
}

/** The same in turns, since each of them takes a while. */
export async function readLargeAnswer(
  bytes: Buffer,
  answer: Answer,
  into: CompletionEvent[],
): Promise<void> {
  const text = textOf(bytes);
  await otherWork();
  if (isTooMuchJson(text)) throw tooManyValues();
  await otherWork();
  const body = parse(text);
  await otherWork();
  addBody(body, answer, into);
}

function addBody(body: Json, answer: Answer, into: CompletionEvent[]): void {
  answer.add(errorIn(body) === null ? asChunk(body) : body, into);
  answer.finish(into);
}

function parse(text: string): Json {
  try {
    return JSON.parse(text);
  } catch {
    throw notJson();
  }
}

function notJson(): Error {
  return invalidAnswer("invalid_json", "The provider's answer is not JSON.");
}

/** The text of UTF-8 bytes without a byte order mark; a decoder made for one answer would cost more than all else here. */
function textOf(bytes: Buffer): string {
  if (bytes.length === 0) throw invalidAnswer("empty_answer", "The provider's answer is empty.");
  if (!isUtf8(bytes)) throw notJson();
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
