const quote = 0x22;
const comma = 0x2c;
const backslash = 0x5c;

/** Measures a JSON text that arrives in pieces. For malformed text, its results mean nothing. */
export class JsonScan {
  /** Objects, arrays and everything between commas so far. */
  values = 1;
  /** The most objects and arrays that were open at once. */
  deepest = 0;
  /** Whether the outermost object or array was closed. */
  isClosed = false;
  #depth = 0;
  #isInString = false;
  #isEscaped = false;

  add(piece: string): void {
    for (let at = 0; at < piece.length; at++) this.#read(piece.charCodeAt(at));
  }

  #read(code: number): void {
    if (this.#isEscaped) this.#isEscaped = false;
    else if (code === quote) this.#isInString = !this.#isInString;
    else if (this.#isInString) this.#isEscaped = code === backslash;
    else if (code === comma) this.values++;
    else if (code === 0x5b || code === 0x7b) {
      this.values++;
      this.deepest = Math.max(this.deepest, ++this.#depth);
    } else if (code === 0x5d || code === 0x7d) this.isClosed ||= --this.#depth === 0;
  }
}
