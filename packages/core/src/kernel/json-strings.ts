/** Reads the strings of a JSON text in order, without decoding them unless asked. */
export interface JsonStrings {
  /** Takes the string that opens at `start`, and gives the position of its closing quote. */
  take(start: number): number;
  /** The value of the string last taken. */
  value(): string;
  /** Whether escapes in the string last taken leave half a surrogate pair. */
  isIllFormed(): boolean;
}

/** Looks ahead for the next backslash once, so that a plain string costs one search for its end. */
export function jsonStrings(text: string): JsonStrings {
  let backslash = -1;
  let start = 0;
  let end = 0;
  let hasEscape = false;
  let hasSurrogateEscape = false;

  return {
    take(opening) {
      start = opening;
      end = next(text, '"', start + 1);
      if (backslash <= start) backslash = next(text, "\\", start + 1);
      hasEscape = backslash < end;
      hasSurrogateEscape = false;
      while (backslash < end) {
        if (isSurrogateEscape(text, backslash)) hasSurrogateEscape = true;
        // Hop over the escaped character: it may be the quote that looked like the end.
        const after = backslash + 2;
        if (after > end) end = next(text, '"', after);
        backslash = next(text, "\\", after);
      }
      return end;
    },
    value() {
      const literal = text.slice(start, end + 1);
      return hasEscape ? unescaped(literal) : literal.slice(1, -1);
    },
    isIllFormed() {
      return hasSurrogateEscape && !unescaped(text.slice(start, end + 1)).isWellFormed();
    },
  };
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
