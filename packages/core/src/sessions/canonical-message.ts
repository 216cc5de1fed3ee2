import type { AssistantMessage, Message, ToolCall } from "../domain/message.ts";
import { type JsonMeasure, measureJson } from "../kernel/measure-json.ts";
import { type Json, stableJson } from "../kernel/stable-json.ts";

/**
 * A message in the form that the transcript chain hashes. Messages that are equal by the specification (section 3.6) have
 * the same text. It includes the role, the content, and the tool calls' ids, names and arguments; a single text part equals
 * a plain string. It omits provider state, and the `name` of assistant messages, because clients add one to answers that
 * had none.
 */
export function canonicalMessage(message: Message): string {
  if (message.role === "assistant") return canonicalAssistant(message);
  if (message.role === "tool") {
    const { tool_call_id: id, content, is_error: failed = false } = message;
    return JSON.stringify(["tool", id, plain(content), ...(failed ? ["error"] : [])]);
  }
  return JSON.stringify([message.role, message.name ?? null, plain(message.content)]);
}

function canonicalAssistant(message: AssistantMessage): string {
  const parts: string[] = [];
  if (typeof message.content === "string") parts.push(message.content);
  else {
    for (const part of message.content ?? [])
      parts.push(part.type === "text" ? part.text : part.refusal);
  }
  if (message.refusal) parts.push(message.refusal);
  const said = parts.filter((part) => part !== "");
  return JSON.stringify(["assistant", said, canonicalCalls(message.tool_calls ?? [])]);
}

type Content = Exclude<Message, AssistantMessage>["content"];

function plain(content: Content): unknown {
  if (typeof content === "string") return content;
  const [only, ...others] = content;
  if (only?.type === "text" && others.length === 0) return only.text;
  return content.map((part) =>
    part.type === "text"
      ? part.text
      : { url: part.image_url.url, detail: part.image_url.detail ?? null },
  );
}

/**
 * Limits on the arguments of one message that are compared as JSON. Larger arguments are compared as text, because parsing
 * and sorting them would block the process.
 */
const bounds = { depth: 64, values: 10_000, members: 10_000, numberLength: 64 };

/** The calls of one message, which share the bounds. */
function canonicalCalls(calls: readonly ToolCall[]): readonly (readonly string[])[] {
  let values = bounds.values;
  return calls.map(({ id, function: { name, arguments: text } }) => {
    // Providers write either for a function without arguments.
    const written = text === "" ? "{}" : text;
    const measure = measureJson(written, { ...bounds, values });
    values -= measure?.values ?? 0;
    return [id, name, measure === null ? `t${written}` : canonicalArguments(written, measure)];
  });
}

/** Arguments are compared as JSON, or as text if they aren't valid JSON or parsing would lose digits or members. */
function canonicalArguments(text: string, { longNumbers, members }: JsonMeasure): string {
  try {
    const value: Json = JSON.parse(text);
    const keepsAll = longNumbers.every(keepsDigits) && membersOf(value) === members;
    return `j${keepsAll ? stableJson(value) : text}`;
  } catch {
    return `t${text}`;
  }
}

/** The members of all objects in a value. */
function membersOf(value: Json | undefined): number {
  if (typeof value !== "object" || value === null) return 0;
  const inner = Object.values(value);
  const own = Array.isArray(value) ? 0 : inner.length;
  return inner.reduce<number>((count, one) => count + membersOf(one), own);
}

/** Whether reading a number keeps all digits of its text. */
function keepsDigits(source: string): boolean {
  const value = Number(source);
  return Number.isFinite(value) && digits(String(value)) === digits(source);
}

/** A number's significant digits, and the power of ten of the first one. So 1e3, 1000 and 1000.0 are equal. */
function digits(source: string): string {
  const match = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(source);
  if (!match) return source;
  const [, sign = "", whole = "", fraction = "", exponent = "0"] = match;
  const all = `${whole}${fraction}`;
  const significant = withoutZeros(all);
  const power = whole.length + Number(exponent) - significant.before;
  return significant.digits === "" ? `${sign}0` : `${sign}${significant.digits}@${power}`;
}

/** Digits without leading and trailing zeros, and how many leading zeros there were. */
function withoutZeros(all: string): { readonly digits: string; readonly before: number } {
  let before = 0;
  let end = all.length;
  while (all[before] === "0") before++;
  while (end > before && all[end - 1] === "0") end--;
  return { digits: all.slice(before, end), before };
}
