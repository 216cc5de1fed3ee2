import { isDigit, numberEnd } from "./json-guard.ts";

/** Limits for a JSON text that is parsed in one go. */
export interface JsonBounds {
  /** Nesting of objects and arrays. */
  readonly depth: number;
  /** Values in the whole text: objects, arrays and everything between commas. */
  readonly values: number;
  /** Members of all its objects. */
  readonly members: number;
  /** Characters of one number. */
  readonly numberLength: number;
}

/** The contents of a JSON text. For malformed text, which `JSON.parse` rejects, the result means nothing. */
export interface JsonMeasure {
  readonly values: number;
  /** The members of all its objects, including repeated names. */
  readonly members: number;
  /** Numbers that parsing may change: those with 16 digits or more, or with an exponent. */
  readonly longNumbers: readonly string[];
}

const quote = 0x22;
const comma = 0x2c;
const backslash = 0x5c;
const colon = 0x3a;

const maxExactDigits = 15;

/** Measures a JSON text in one pass, without recursion; null if it exceeds the bounds. */
export function measureJson(text: string, bounds: JsonBounds): JsonMeasure | null {
  const longNumbers: string[] = [];
  let values = 1;
  let members = 0;
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) at = endOfString(text, at);
    else if (code === comma) values++;
    else if (code === colon) members++;
    else if (code === 0x5b || code === 0x7b) {
      values++;
      depth++;
    } else if (code === 0x5d || code === 0x7d) depth--;
    else if (isDigit(code)) {
      const end = numberEnd(text, at);
      if (end - at > bounds.numberLength) return null;
      if (end - at > maxExactDigits || hasExponent(text, at, end))
        longNumbers.push(text.slice(text[at - 1] === "-" ? at - 1 : at, end));
      at = end - 1;
    }
    if (values > bounds.values || members > bounds.members || depth > bounds.depth) return null;
  }
  return { values, members, longNumbers };
}

/** Measures a JSON text that arrives in pieces. For malformed text, the result has no meaning. */
export class JsonScan {
  /** How many objects and arrays are open, and the most that were open at once. */
  depth = 0;
  deepest = 0;
  #isInString = false;
  #isEscaped = false;

  /** Returns how many objects, arrays and commas the piece has. */
  add(piece: string): number {
    let values = 0;
    for (let at = 0; at < piece.length; at++) {
      const code = piece.charCodeAt(at);
      if (this.#isEscaped) this.#isEscaped = false;
      else if (code === quote) this.#isInString = !this.#isInString;
      else if (this.#isInString) this.#isEscaped = code === backslash;
      else if (code === comma) values++;
      else if (code === 0x5b || code === 0x7b) {
        values++;
        this.deepest = Math.max(this.deepest, ++this.depth);
      } else if (code === 0x5d || code === 0x7d) this.depth--;
    }
    return values;
  }
}

const longString = 64;

/** The closing quote of the string that opens at `start`; the end of the text if it has none. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    if (at === start + longString) {
      // Millions of characters in base64 have no escapes, and finding one takes far less time than reading each.
      const end = text.indexOf('"', at);
      if (end > 0 && !text.slice(at, end).includes("\\")) return end;
    }
    const code = text.charCodeAt(at);
    if (code === quote) return at;
    if (code === backslash) at++;
  }
  return text.length;
}

function hasExponent(text: string, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if ((text.charCodeAt(at) | 0x20) === 0x65) return true;
  return false;
}
