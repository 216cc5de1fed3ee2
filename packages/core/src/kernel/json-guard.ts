import { JsonLevels } from "./json-levels.ts";
import type { JsonFault, JsonFaultKind, JsonRules } from "./json-rules.ts";
import { JsonStrings } from "./json-strings.ts";

const quote = 0x22;
const plus = 0x2b;
const comma = 0x2c;
const minus = 0x2d;
const dot = 0x2e;
const zero = 0x30;
const nine = 0x39;
const bigE = 0x45;
const smallE = 0x65;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/**
 * Looks in one pass for what `JSON.parse` lets through although it costs too much or has no one meaning: deep nesting,
 * repeated keys, keys that touch prototypes, numbers that lose digits, halves of surrogate pairs. Malformed JSON is
 * `JSON.parse`'s to refuse, whatever is said of it here.
 */
export function guardJson(text: string, rules: JsonRules): JsonFault | null {
  if (!text.isWellFormed()) return { kind: "surrogate", path: "" };
  const strings = new JsonStrings(text);
  const levels = new JsonLevels(rules);

  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    let kind: JsonFaultKind | null = null;
    if (code === quote) {
      at = strings.take(at);
      if (strings.isIllFormed()) kind = "surrogate";
      else if (levels.expectsKey()) kind = levels.key(strings.value());
    } else if (code === comma) {
      kind = levels.comma();
    } else if (code === openBrace || code === openBracket) {
      kind = levels.open(code === openBrace);
    } else if (code === closeBrace || code === closeBracket) {
      levels.close();
    } else if (code === minus || isDigit(code)) {
      const end = numberEnd(text, at);
      if (!isExact(text, at, end)) kind = "number";
      at = end - 1;
    }
    if (kind !== null) return { kind, path: levels.path() };
  }
  return null;
}

function isDigit(code: number): boolean {
  return code >= zero && code <= nine;
}

function numberEnd(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && isNumeric(text.charCodeAt(at))) at++;
  return at;
}

function isNumeric(code: number): boolean {
  if (isDigit(code)) return true;
  return code === dot || code === minus || code === plus || code === smallE || code === bigE;
}

/** Whether a number survives being read: an integer keeps its digits, and no number becomes infinite. */
function isExact(text: string, start: number, end: number): boolean {
  // No number this short is too large: 9e99.
  if (end - start < 5) return true;
  const token = text.slice(start, end);
  const value = Number(token);
  return /^-?\d+$/.test(token) ? Number.isSafeInteger(value) : Number.isFinite(value);
}
