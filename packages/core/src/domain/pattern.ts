/** Matches names against a pattern in which `*` stands for any run of characters. Linear in the name for each `*`. */
export function matchesGlob(pattern: string, name: string): boolean {
  let at = 0;
  let read = 0;
  let star = -1;
  let resume = 0;
  while (read < name.length) {
    if (pattern[at] === "*") {
      star = at++;
      resume = read;
    } else if (pattern[at] === name[read]) {
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
