/**
 * Matches a name against a pattern in which `*` matches any characters, ignoring ASCII case. Takes at most as many steps as
 * the product of both lengths.
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

/** Converts only ASCII letters to lower case, like `lower()` in both SQL stores. */
export function lowerAscii(text: string): string {
  return upperLetters.test(text) ? text.replace(/[A-Z]/g, (letter) => letter.toLowerCase()) : text;
}

/** A value or a list of values, as used in rules, budgets and filters. */
export type OneOrMany<Value extends string = string> = Value | readonly Value[];

/** The values of a selector. */
export function listed<Value extends string>(selector: OneOrMany<Value>): readonly Value[] {
  return typeof selector === "string" ? [selector] : selector;
}

/** Whether a selector names exactly this value. An absent selector matches everything. */
export function selects(selector: OneOrMany | undefined, value: string): boolean {
  if (selector === undefined) return true;
  return typeof selector === "string" ? selector === value : selector.includes(value);
}
