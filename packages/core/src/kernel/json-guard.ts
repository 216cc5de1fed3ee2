/** What a JSON text may be. Members named in `freeForm` hold data of the client's own, such as a JSON Schema. */
export interface JsonRules {
  /** Nesting of objects and arrays. */
  readonly depth: number;
  /** Nesting inside a free-form member, counted from that member. */
  readonly freeFormDepth: number;
  readonly freeForm: ReadonlySet<string>;
  /** Members of one object. */
  readonly keys: number;
  /** Commas and brackets of the whole text: what it costs to parse, beside its length. */
  readonly values: number;
}

export type JsonFaultKind =
  | "depth"
  | "keys"
  | "values"
  | "duplicate-key"
  | "forbidden-key"
  | "number"
  | "surrogate";

/** The first fault of a text; `path` is where it stands, or empty at the top. */
export interface JsonFault {
  readonly kind: JsonFaultKind;
  readonly path: string;
}

/** An object or array that is open at this point of the text. */
interface Level {
  readonly isObject: boolean;
  readonly isFreeForm: boolean;
  /** The deepest level that may be opened inside. */
  readonly deepest: number;
  /** Keys so far; a set once there are many. */
  readonly keys: string[];
  set: Set<string> | null;
  expectsKey: boolean;
  key: string;
  index: number;
}

const quote = 0x22;
const comma = 0x2c;
const minus = 0x2d;
const zero = 0x30;
const nine = 0x39;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

const forbidden = new Set(["__proto__", "constructor", "prototype"]);
/** Numbers of fewer characters are exact: `1e307` is finite, and so are 4 digits of exponent out of reach. */
const shortNumber = 5;
const fewKeys = 12;
const longestName = 64;

/**
 * Looks for what `JSON.parse` would let through and what should not get that far: one pass over the text, before it
 * is parsed. Says nothing of malformed JSON, which is `JSON.parse`'s to refuse.
 */
export function guardJson(text: string, rules: JsonRules): JsonFault | null {
  if (!text.isWellFormed()) return { kind: "surrogate", path: "" };
  const strings = createStringReader(text);
  const levels: Level[] = [];
  let level: Level | null = null;
  let values = 0;
  let kind: JsonFaultKind | null = null;

  for (let at = 0; at < text.length && kind === null; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) {
      const end = strings.endOf(at);
      if (strings.hasEscape() || level?.expectsKey) {
        const literal = text.slice(at, end + 1);
        const value = strings.hasEscape() ? unescaped(literal) : literal.slice(1, -1);
        if (!value.isWellFormed()) kind = "surrogate";
        else if (level?.expectsKey) kind = enterKey(level, value, rules);
      }
      at = end;
    } else if (code === comma) {
      if (++values > rules.values) kind = "values";
      else if (level !== null) advance(level);
    } else if (code === openBrace || code === openBracket) {
      if (++values > rules.values) kind = "values";
      else if (levels.length >= (level?.deepest ?? rules.depth)) kind = "depth";
      else {
        level = opened(level, levels.length, code === openBrace, rules);
        levels.push(level);
      }
    } else if (code === closeBrace || code === closeBracket) {
      levels.pop();
      level = levels.at(-1) ?? null;
    } else if (code === minus || (code >= zero && code <= nine)) {
      const end = numberEnd(text, at);
      if (!isExact(text, at, end)) kind = "number";
      at = end - 1;
    }
  }
  return kind === null ? null : { kind, path: pathOf(levels) };
}

/** What a comma means: a key follows, or the next element. */
function advance(level: Level): void {
  if (level.isObject) level.expectsKey = true;
  else level.index += 1;
}

function opened(parent: Level | null, depth: number, isObject: boolean, rules: JsonRules): Level {
  const inherits = parent?.isFreeForm ?? false;
  const begins = !inherits && parent?.isObject === true && rules.freeForm.has(parent.key);
  const deepest = parent?.deepest ?? rules.depth;
  return {
    isObject,
    isFreeForm: inherits || begins,
    deepest: begins ? depth + rules.freeFormDepth : deepest,
    keys: [],
    set: null,
    expectsKey: isObject,
    key: "",
    index: 0,
  };
}

/** Takes note of a key; says what is wrong with it. */
function enterKey(level: Level, key: string, rules: JsonRules): JsonFaultKind | null {
  level.expectsKey = false;
  level.key = key;
  if (!level.isFreeForm && forbidden.has(key)) return "forbidden-key";
  if (level.set === null && level.keys.length === fewKeys) level.set = new Set(level.keys);
  if (level.set?.has(key) ?? level.keys.includes(key)) return "duplicate-key";
  level.set?.add(key);
  if (level.keys.push(key) > rules.keys) return "keys";
  return null;
}

function numberEnd(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && isNumeric(text.charCodeAt(at))) at++;
  return at;
}

/** Digits, `+ - .`, `e` and `E`. */
function isNumeric(code: number): boolean {
  if (code >= zero && code <= nine) return true;
  return code === 0x2b || code === minus || code === 0x2e || code === 0x65 || code === 0x45;
}

/** Whether a number survives being read: an integer keeps its digits, and no number becomes infinite. */
function isExact(text: string, start: number, end: number): boolean {
  if (end - start < shortNumber) return true;
  const token = text.slice(start, end);
  const value = Number(token);
  return /^-?\d+$/.test(token) ? Number.isSafeInteger(value) : Number.isFinite(value);
}

interface StringReader {
  /** The position of the quote that closes the string opened at `start`. */
  endOf(start: number): number;
  /** Whether the string last read holds an escape. */
  hasEscape(): boolean;
}

/** Reads strings by looking ahead for the next backslash once, so that plain strings cost one search for their end. */
function createStringReader(text: string): StringReader {
  let backslash = -1;
  let sawEscape = false;
  return {
    endOf(start) {
      let end = next(text, '"', start + 1);
      if (backslash <= start) backslash = next(text, "\\", start + 1);
      sawEscape = backslash < end;
      while (backslash < end) {
        // Hop over the escaped character: it may be the quote that looked like the end.
        const after = backslash + 2;
        if (after > end) end = next(text, '"', after);
        backslash = next(text, "\\", after);
      }
      return end;
    },
    hasEscape: () => sawEscape,
  };
}

/** The value of a string with escapes; as it is written when it is malformed. */
function unescaped(literal: string): string {
  try {
    return String(JSON.parse(literal));
  } catch {
    return literal;
  }
}

function next(text: string, sought: string, from: number): number {
  const found = text.indexOf(sought, from);
  return found < 0 ? text.length : found;
}

/** `messages[0].content`: the keys and indexes of the open levels, long keys cut short. */
function pathOf(levels: readonly Level[]): string {
  let path = "";
  for (const level of levels) {
    if (!level.isObject) path += `[${level.index}]`;
    else if (level.key !== "")
      path += (path === "" ? "" : ".") + level.key.slice(0, longestName).toWellFormed();
  }
  return path;
}
