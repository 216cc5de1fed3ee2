import { isUtf8 } from "node:buffer";
import {
  type CompletionEvent,
  isTooMuchJson,
  type Json,
  yieldToEventLoop,
} from "@tollgate/core/provider";
import type { AnswerReader } from "./answer-reader.ts";
import { invalidAnswer, tooManyValues } from "./failures.ts";

/** Reads an answer from the bytes of a whole body: the same events, by the same code, as from a stream. */
export function readPlainAnswer(
  bytes: Buffer,
  answer: AnswerReader,
  into: CompletionEvent[],
): void {
  const text = textOf(bytes);
  if (isTooMuchJson(text)) throw tooManyValues();
  answer.addWhole(parse(text), into);
  answer.finish(into);
}

/** The same in turns, since each of them takes a while. */
export async function readLargeAnswer(
  bytes: Buffer,
  answer: AnswerReader,
  into: CompletionEvent[],
): Promise<void> {
  const text = textOf(bytes);
  await yieldToEventLoop();
  if (isTooMuchJson(text)) throw tooManyValues();
  await yieldToEventLoop();
  const body = parse(text);
  await yieldToEventLoop();
  answer.addWhole(body, into);
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
