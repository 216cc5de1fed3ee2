import { type CompletionEvent, type Json, parseWithDigits } from "@tollgate/core/provider";
import { z } from "zod";
import type { AnswerReader } from "../../../provider-http/src/dialect.ts";
import { accepted, type Outcome, require } from "./surface.ts";

const text = z.string().nullish();
const label = z.string().min(1);
const maxDepth = 64;
const input = z
  .unknown()
  .refine((value) => depthOf(value) <= maxDepth)
  .optional();

/** The blocks that Tollgate reads. Blocks of other types are ignored. */
const blocks = new Map<string, z.ZodType>([
  ["text", z.looseObject({ text })],
  ["thinking", z.looseObject({ thinking: text, signature: text })],
  ["redacted_thinking", z.looseObject({ data: text })],
  ["tool_use", z.looseObject({ id: label, name: label, input })],
]);
const block = z
  .looseObject({ type: label })
  .refine((value) => blocks.get(value.type)?.safeParse(value).success ?? true);
const failure = z.looseObject({ error: z.union([z.looseObject({}), label]) });
const message = z.looseObject({ content: z.array(z.unknown()) });
const stopReason = z.enum([
  "end_turn",
  "max_tokens",
  "stop_sequence",
  "tool_use",
  "pause_turn",
  "refusal",
  "model_context_window_exceeded",
]);

/** How many lists and objects enclose the innermost one, with itself. */
function depthOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

/** The code that a whole answer of the Messages API must lead to. Shares nothing with the reader. */
function expectedOf(body: unknown): string {
  if (failure.safeParse(body).success) return "upstream_error";
  const { data } = message.safeParse(body);
  if (data === undefined) return "invalid_answer";
  if (!z.array(block).safeParse(data.content).success) return "invalid_event";
  const { stop_reason } = data;
  if (stop_reason === undefined || stop_reason === null) return "answer_cut";
  return stopReason.safeParse(stop_reason).success ? accepted.code : "unknown_finish_reason";
}

const anyBlock = z.looseObject({ type: label });

/** The text and the inputs of tool calls that a valid answer contains. */
function contentOf(body: unknown): string {
  const content = z.array(anyBlock).parse(message.parse(body).content);
  const said = content.map(({ type, text: words }) => (type === "text" ? (words ?? "") : ""));
  const inputs = content.flatMap((part) =>
    part.type === "tool_use" ? [part["input"] === undefined ? {} : part["input"]] : [],
  );
  return said.join("") + inputs.map((value) => JSON.stringify(value)).join("");
}

function readContent(events: readonly CompletionEvent[]): string {
  const said = events.map((event) => (event.type === "text-delta" ? event.text : ""));
  const inputs = events.map((event) => (event.type === "tool-call-delta" ? event.arguments : ""));
  return said.join("") + inputs.join("");
}

/** Reads a whole answer, and requires that it ends as its content says. */
export function runWholeAnswer(
  reader: AnswerReader,
  bytes: Buffer,
  reasonOf: (error: unknown) => string,
): Outcome {
  const text = bytes.toString();
  let body: Json;
  try {
    body = JSON.parse(text);
  } catch {
    return { code: "not JSON" };
  }
  const events: CompletionEvent[] = [];
  let code = accepted.code;
  try {
    reader.addWhole(body, events, text);
    reader.finish(events);
  } catch (error) {
    code = reasonOf(error);
  }
  const expected = expectedOf(body);
  require(code === expected, `an answer ends with ${code}, not ${expected}`);
  if (code === accepted.code)
    require(readContent(events) ===
      contentOf(parseWithDigits(text)), "an answer's content differs");
  return { code };
}
