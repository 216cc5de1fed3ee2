import type { AssistantMessage, Message, ToolCall } from "../domain/message.ts";
import { type Json, stableJson } from "../kernel/stable-json.ts";

/**
 * A message as the transcript chain sees it: equal texts for messages the specification calls the same (section 3.6).
 * Role, content, name, tool call ids, names and arguments take part; a single text part is the plain string.
 */
export function canonicalMessage(message: Message): string {
  if (message.role === "assistant") return canonicalAssistant(message);
  if (message.role === "tool") {
    return JSON.stringify(["tool", message.tool_call_id, plain(message.content)]);
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
  return JSON.stringify([
    "assistant",
    message.name ?? null,
    said,
    (message.tool_calls ?? []).map(canonicalCall),
  ]);
}

function canonicalCall(call: ToolCall): readonly string[] {
  return [call.id, call.function.name, canonicalArguments(call.function.arguments)];
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

/** Long digit runs are where parsing can lose digits. */
const longNumber = /\d{16}|\d[eE]/;

/** Arguments that parse as JSON compare as JSON; as text where they do not, or where parsing would lose digits. */
export function canonicalArguments(text: string): string {
  try {
    const value: Json = JSON.parse(text);
    return `j${longNumber.test(text) && losesDigits(text) ? text : stableJson(value)}`;
  } catch {
    return `t${text}`;
  }
}

function losesDigits(text: string): boolean {
  let loses = false;
  JSON.parse(text, (_key, value: unknown, context?: { source?: string }) => {
    if (typeof value === "number" && context?.source !== undefined)
      loses ||= !sameNumber(value, context.source);
    return value;
  });
  return loses;
}

/** Whether a number's text says no more than the number that was read from it. */
function sameNumber(value: number, source: string): boolean {
  return Number.isFinite(value) && digits(String(value)) === digits(source);
}

/** A number's significant digits and the power of ten of the first, so that 1e3, 1000 and 1000.0 are the same. */
function digits(source: string): string {
  const match = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(source);
  if (!match) return source;
  const [, sign = "", whole = "", fraction = "", exponent = "0"] = match;
  const all = `${whole}${fraction}`;
  const significant = all.replace(/^0+/, "");
  const power = whole.length + Number(exponent) - (all.length - significant.length);
  const kept = significant.replace(/0+$/, "");
  return kept === "" ? `${sign}0` : `${sign}${kept}@${power}`;
}
