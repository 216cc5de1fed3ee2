import type { CompletionEvent } from "@tollgate/core/provider";
import { readBytesOf } from "../../provider-http/test/read-bytes.ts";
import { openaiDialect } from "../src/openai-compatible.ts";

export const readBytes = readBytesOf(openaiDialect({}));

/** Cuts bytes at the given places. */
export function cutAt(bytes: Uint8Array, places: readonly number[]): readonly Uint8Array[] {
  const sorted = [...places].sort((a, b) => a - b);
  return [0, ...sorted].map((from, at) => bytes.subarray(from, sorted[at] ?? bytes.length));
}

/** Joins neighbouring deltas of one kind, so answers compare equal however they were cut. */
export function joined(events: readonly CompletionEvent[]): readonly CompletionEvent[] {
  const result: CompletionEvent[] = [];
  for (const event of events) {
    const last = result.at(-1);
    if (event.type === "tool-call-delta" && last?.type === event.type && last.index === event.index)
      result[result.length - 1] = { ...last, arguments: last.arguments + event.arguments };
    else if ("text" in event && last && "text" in last && last.type === event.type)
      result[result.length - 1] = { ...last, text: last.text + event.text };
    else result.push(event);
  }
  return result;
}
