/**
 * Reads the strings of a JSON text in order, without decoding them unless asked. It looks ahead for the next backslash once,
 * so that a plain string costs one search for its end.
 */
export class JsonStrings {
  readonly #text: string;
  #backslash = -1;
  #start = 0;
  #end = 0;
  #hasEscape = false;
  #hasSurrogateEscape = false;

  constructor(text: string) {
    this.#text = text;
  }

  /** Takes the string that opens at `start`, and gives the position of its closing quote. */
  take(start: number): number {
    const text = this.#text;
    let end = next(text, '"', start + 1);
    if (this.#backslash <= start) this.#backslash = next(text, "\\", start + 1);
    this.#start = start;
    this.#hasEscape = this.#backslash < end;
    this.#hasSurrogateEscape = false;
    while (this.#backslash < end) {
      if (isSurrogateEscape(text, this.#backslash)) this.#hasSurrogateEscape = true;
      // Hop over the escaped character: it may be the quote that looked like the end.
      const after = this.#backslash + 2;
      if (after > end) end = next(text, '"', after);
      this.#backslash = next(text, "\\", after);
    }
    this.#end = end;
    return end;
  }

  /** The value of the string last taken. */
  value(): string {
    return this.#hasEscape
      ? unescaped(this.#text.slice(this.#start, this.#end + 1))
      : this.#text.slice(this.#start + 1, this.#end);
  }

  /** Whether escapes in the string last taken leave half a surrogate pair. */
  isIllFormed(): boolean {
    return (
      this.#hasSurrogateEscape &&
      !unescaped(this.#text.slice(this.#start, this.#end + 1)).isWellFormed()
    );
  }
}

function next(text: string, sought: string, from: number): number {
  const found = text.indexOf(sought, from);
  return found < 0 ? text.length : found;
}

/** `\ud8..` to `\udf..`: half of a pair. */
function isSurrogateEscape(text: string, backslash: number): boolean {
  return text[backslash + 1] === "u" && /[dD]/.test(text[backslash + 2] ?? "");
}

/** The value of a string with escapes; as it is written when it is malformed, which is for the parser to refuse. */
function unescaped(literal: string): string {
  try {
    return String(JSON.parse(literal));
  } catch {
    return literal;
  }
}
