import type { Json } from "./stable-json.ts";

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
 * Finds in one pass the problems that `JSON.parse` accepts: deep nesting, repeated keys, keys that touch prototypes,
 * numbers that lose digits, and halves of surrogate pairs. Leaves malformed JSON to `JSON.parse`, so its result means
 * nothing there.
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
      if (!isExact(text, at, end)) kind = levels.longNumber(at, end);
      at = end - 1;
    }
    if (kind !== null) return { kind, path: levels.path() };
  }
  return null;
}

export function isDigit(code: number): boolean {
  return code >= zero && code <= nine;
}

/** The end of the number that starts at `start`. */
export function numberEnd(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && isNumeric(text.charCodeAt(at))) at++;
  return at;
}

function isNumeric(code: number): boolean {
  if (isDigit(code)) return true;
  return code === dot || code === minus || code === plus || code === smallE || code === bigE;
}

/** Whether a number can be read exactly: an integer keeps its digits, and no number becomes infinite. */
export function isExact(text: string, start = 0, end = text.length): boolean {
  // Even 9e99 is not too large.
  if (end - start < 5) return true;
  const token = text.slice(start, end);
  const value = Number(token);
  return /^-?\d+$/.test(token) ? Number.isSafeInteger(value) : Number.isFinite(value);
}

/** Introduced by ES2026. TypeScript's library doesn't have it yet. */
const rawJson: unknown = Reflect.get(JSON, "rawJSON");

/** Creates a value that `JSON.stringify` writes as this number; null where the engine can't. */
export const rawNumber =
  typeof rawJson === "function"
    ? (source: string): unknown => Reflect.apply(rawJson, JSON, [source])
    : null;

/**
 * Parses JSON like `JSON.parse`, but numbers that can't be read exactly become objects that `JSON.stringify` writes as they
 * were.
 */
export function parseWithDigits(text: string): Json {
  return JSON.parse(text, (_key, value: unknown, { source = "" }: { source?: string } = {}) =>
    typeof value === "number" && rawNumber !== null && !isExact(source) ? rawNumber(source) : value,
  );
}

/** Whether a parsed value is a number that can't be read exactly. */
export function isLongNumber(value: object): boolean {
  return Object.getPrototypeOf(value) === null && "rawJSON" in value;
}

/**
 * Limits for a JSON text. Members named in `freeForm` below the top level contain the sender's own data, where any key is
 * allowed.
 */
export interface JsonRules {
  /** Nesting of objects and arrays. */
  readonly depth: number;
  /** Nesting of a JSON Schema, counted from its member. */
  readonly schemaDepth: number;
  /** The limit that applies to each member, counted from it. */
  readonly freeForm: ReadonlyMap<string, "depth" | "schemaDepth">;
  /**
   * Called with the place of each number in a free-form member that can't be read exactly. Without it, and outside such
   * members, that number is a fault.
   */
  readonly noteLongNumber?: ((start: number, end: number) => void) | undefined;
  /** Members of one object. A model wrote the free-form members that `depth` limits, so only `values` limits theirs. */
  readonly keys: number;
  /** Values in the whole text: objects, arrays and everything between commas. */
  readonly values: number;
}

/** Names that touch prototypes. They're allowed only in the sender's own data. */
export const forbiddenKeys: ReadonlySet<string> = new Set([
  "__proto__",
  "constructor",
  "prototype",
]);

export type JsonFaultKind =
  | "depth"
  | "keys"
  | "values"
  | "duplicate-key"
  | "forbidden-key"
  | "number"
  | "surrogate";

/** The first fault of a text. `path` is its place, empty for the top level. */
interface JsonFault {
  readonly kind: JsonFaultKind;
  readonly path: string;
}

interface Level {
  readonly isObject: boolean;
  readonly isFreeForm: boolean;
  /** The maximum depth inside this level, and its maximum number of members. */
  readonly maxDepth: number;
  readonly maxKeys: number;
  readonly keys: string[];
  /** The same keys as a set, once there are many. */
  keySet: Set<string> | null;
  expectsKey: boolean;
  key: string;
  index: number;
}

const fewKeys = 12;
const maxNameLength = 64;

/** The objects and arrays that are open at a point of a JSON text. */
class JsonLevels {
  readonly #rules: JsonRules;
  readonly #levels: Level[] = [];
  #level: Level | null = null;
  #values = 0;

  constructor(rules: JsonRules) {
    this.#rules = rules;
  }

  open(isObject: boolean): JsonFaultKind | null {
    const rules = this.#rules;
    const depth = this.#levels.length;
    if (++this.#values > rules.values) return "values";
    if (depth >= (this.#level?.maxDepth ?? rules.depth)) return "depth";
    this.#level = nestedLevel(this.#level, depth, isObject, rules);
    this.#levels.push(this.#level);
    return null;
  }

  close(): void {
    this.#levels.pop();
    this.#level = this.#levels.at(-1) ?? null;
  }

  comma(): JsonFaultKind | null {
    if (++this.#values > this.#rules.values) return "values";
    if (this.#level?.isObject) this.#level.expectsKey = true;
    else if (this.#level !== null) this.#level.index += 1;
    return null;
  }

  longNumber(start: number, end: number): JsonFaultKind | null {
    const { noteLongNumber } = this.#rules;
    const { isFreeForm } = nestedLevel(this.#level, this.#levels.length, false, this.#rules);
    // In the place of a key, a string instead of the number would be valid.
    if (noteLongNumber === undefined || !isFreeForm || this.expectsKey()) return "number";
    noteLongNumber(start, end);
    return null;
  }

  /** Whether the next string is a key. */
  expectsKey(): boolean {
    return this.#level?.expectsKey ?? false;
  }

  key(key: string): JsonFaultKind | null {
    return this.#level === null ? null : recordKey(this.#level, key);
  }

  /** The path of the current place, such as `messages[0].content`. Long keys are cut short. */
  path(): string {
    return pathOf(this.#levels);
  }
}

/** A nested level. From a free-form member on, its own depth limit applies and any key is allowed. */
function nestedLevel(
  parent: Level | null,
  depth: number,
  isObject: boolean,
  rules: JsonRules,
): Level {
  const continues = parent?.isFreeForm ?? false;
  const isMember = !continues && depth > 1 && parent?.isObject === true;
  const limit = isMember ? rules.freeForm.get(parent.key) : undefined;
  return {
    isObject,
    isFreeForm: continues || limit !== undefined,
    maxDepth: limit === undefined ? (parent?.maxDepth ?? rules.depth) : depth + rules[limit],
    maxKeys: limit === "depth" ? rules.values : (parent?.maxKeys ?? rules.keys),
    keys: [],
    keySet: null,
    expectsKey: isObject,
    key: "",
    index: 0,
  };
}

/** Records a key. Returns its fault, if any. */
function recordKey(level: Level, key: string): JsonFaultKind | null {
  level.expectsKey = false;
  level.key = key;
  if (!level.isFreeForm && forbiddenKeys.has(key)) return "forbidden-key";
  if (level.keySet === null && level.keys.length === fewKeys) level.keySet = new Set(level.keys);
  if (level.keySet?.has(key) ?? level.keys.includes(key)) return "duplicate-key";
  level.keySet?.add(key);
  return level.keys.push(key) > level.maxKeys ? "keys" : null;
}

function pathOf(levels: readonly Level[]): string {
  let path = "";
  for (const { isObject, key, index } of levels) {
    if (!isObject) path += `[${index}]`;
    else if (key !== "")
      path += (path === "" ? "" : ".") + key.slice(0, maxNameLength).toWellFormed();
  }
  return path;
}

/**
 * Reads the strings of a JSON text in order, and decodes them only on request. It remembers the next backslash, so a plain
 * string costs a single search for its end.
 */
class JsonStrings {
  readonly #text: string;
  #backslash = -1;
  #start = 0;
  #end = 0;
  #hasEscape = false;
  #hasSurrogateEscape = false;

  constructor(text: string) {
    this.#text = text;
  }

  /** Reads the string that opens at `start`. Returns the position of its closing quote. */
  take(start: number): number {
    const text = this.#text;
    let end = next(text, '"', start + 1);
    if (this.#backslash <= start) this.#backslash = next(text, "\\", start + 1);
    this.#start = start;
    this.#hasEscape = this.#backslash < end;
    this.#hasSurrogateEscape = false;
    while (this.#backslash < end) {
      if (isSurrogateEscape(text, this.#backslash)) this.#hasSurrogateEscape = true;
      // Skip the escaped character: it may be the quote that looked like the end.
      const after = this.#backslash + 2;
      if (after > end) end = next(text, '"', after);
      this.#backslash = next(text, "\\", after);
    }
    this.#end = end;
    return end;
  }

  /** The value of the last string. */
  value(): string {
    return this.#hasEscape
      ? unescaped(this.#text.slice(this.#start, this.#end + 1))
      : this.#text.slice(this.#start + 1, this.#end);
  }

  /** Whether escapes in the last string leave half a surrogate pair. */
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

/** The value of a string with escapes; unchanged if malformed, since the parser will reject it. */
function unescaped(literal: string): string {
  try {
    return String(JSON.parse(literal));
  } catch {
    return literal;
  }
}
