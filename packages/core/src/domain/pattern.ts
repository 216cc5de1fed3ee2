/**
 * Matches names against a pattern in which `*` matches any run of characters, ignoring ASCII case. At most
 * pattern × name steps.
 */
export function matchesGlob(pattern: string, name: string): boolean {
  let at = 0;
  let read = 0;
  let star = -1;
  let resume = 0;
  while (read < name.length) {
    if (pattern[at] === "*") {
      star = at++;
      resume = read;
    } else if (at < pattern.length && sameLetter(pattern.charCodeAt(at), name.charCodeAt(read))) {
      at++;
      read++;
    } else if (star >= 0) {
      at = star + 1;
      read = ++resume;
    } else {
      return false;
    }
  }
  while (pattern[at] === "*") at++;
  return at === pattern.length;
}

function sameLetter(a: number, b: number): boolean {
  return a === b || ((a ^ b) === 0x20 && isUpper(a & ~0x20));
}

function isUpper(code: number): boolean {
  return code >= 0x41 && code <= 0x5a;
}

const upperLetters = /[A-Z]/;

/** A text with its ASCII letters in lower case and all others as they are, as `lower()` of both SQL stores gives it. */
export function lowerAscii(text: string): string {
  return upperLetters.test(text) ? text.replace(/[A-Z]/g, (letter) => letter.toLowerCase()) : text;
}

/** A value or a list of values, as rules, budgets and filters write it. */
export type OneOrMany<Value extends string = string> = Value | readonly Value[];

/** The values of a selector. */
export function listed<Value extends string>(selector: OneOrMany<Value>): readonly Value[] {
  return typeof selector === "string" ? [selector] : selector;
}

/** Whether a selector names a value exactly; an absent selector matches everything. */
export function selects(selector: OneOrMany | undefined, value: string): boolean {
  if (selector === undefined) return true;
  return typeof selector === "string" ? selector === value : selector.includes(value);
}
