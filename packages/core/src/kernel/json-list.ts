const quote = 0x22;
export const comma = 0x2c;
const colon = 0x3a;
const backslash = 0x5c;
const openBracket = 0x5b;
export const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/** The end of a list, and the number of values on the way, as `guardJson` counts them. */
interface ListEnd {
  /** The position of its closing bracket. */
  readonly at: number;
  readonly values: number;
}

/**
 * The position after the opening bracket of a member's list in a JSON object; -1 if the object has no such list. It looks
 * only at strings and brackets, because the text is parsed later.
 */
export function startOfList(text: Uint8Array, member: string): number {
  let at = afterSpace(text, 0);
  if (text[at] !== openBrace) return -1;
  for (at = afterSpace(text, at + 1); text[at] === quote; at = afterSpace(text, at + 1)) {
    const end = endOfString(text, at);
    const isMember = isAscii(text, at + 1, end, member);
    at = afterSpace(text, end + 1);
    if (text[at] !== colon) return -1;
    at = afterSpace(text, at + 1);
    if (isMember) return text[at] === openBracket ? at + 1 : -1;
    at = afterSpace(text, endOfValue(text, at));
    if (text[at] !== comma) return -1;
  }
  return -1;
}

/** The position after a value's last character. */
export function endOfValue(text: Uint8Array, start: number): number {
  const first = text[start];
  if (first === quote) return endOfString(text, start) + 1;
  if (first === openBrace || first === openBracket) return endOfList(text, start + 1).at + 1;
  let at = start;
  while (at < text.length && !endsScalar(text[at])) at++;
  return at;
}

/** The end of the list or object that `start` is in. */
export function endOfList(text: Uint8Array, start: number): ListEnd {
  let values = 0;
  let depth = 1;
  let at = start;
  for (; at < text.length; at++) {
    const code = text[at];
    if (code === quote) at = endOfString(text, at);
    else if (code === comma) values++;
    else if (code === openBracket || code === openBrace) {
      values++;
      depth++;
    } else if ((code === closeBracket || code === closeBrace) && --depth === 0) break;
  }
  return { at, values };
}

/** The position of the next character that isn't white space. */
export function afterSpace(text: Uint8Array, start: number): number {
  let at = start;
  while (isSpace(text[at])) at++;
  return at;
}

/** The end of the text before `end`, without white space. */
export function beforeSpace(text: Uint8Array, end: number): number {
  let at = end;
  while (isSpace(text[at - 1])) at--;
  return at;
}

function endOfString(text: Uint8Array, start: number): number {
  let at = start + 1;
  for (; at < text.length && text[at] !== quote; at++) if (text[at] === backslash) at++;
  return at;
}

function isAscii(text: Uint8Array, start: number, end: number, word: string): boolean {
  if (end - start !== word.length) return false;
  for (let at = 0; at < word.length; at++)
    if (text[start + at] !== word.charCodeAt(at)) return false;
  return true;
}

function isSpace(code: number | undefined): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}

function endsScalar(code: number | undefined): boolean {
  return code === comma || code === closeBracket || code === closeBrace || isSpace(code);
}
