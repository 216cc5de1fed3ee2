import { forbiddenKeys, type JsonFaultKind, type JsonRules } from "./json-rules.ts";

interface Level {
  readonly isObject: boolean;
  readonly isFreeForm: boolean;
  /** How many levels may be open when one opens inside. */
  readonly maxDepth: number;
  readonly keys: string[];
  /** The same keys, once there are many. */
  keySet: Set<string> | null;
  expectsKey: boolean;
  key: string;
  index: number;
}

const fewKeys = 12;
const maxNameLength = 64;

/** The objects and arrays that are open at one point of a JSON text, and what may come next in them. */
export class JsonLevels {
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
    this.#level = within(this.#level, depth, isObject, rules);
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

  /** Whether a string that comes now is a key. */
  expectsKey(): boolean {
    return this.#level?.expectsKey ?? false;
  }

  key(key: string): JsonFaultKind | null {
    return this.#level === null ? null : enter(this.#level, key, this.#rules);
  }

  /** `messages[0].content`: the keys and indexes of the open levels, long keys cut short. */
  path(): string {
    return pathOf(this.#levels);
  }
}

/** A level inside another. A free-form member allows its own depth, and any name, from here down. */
function within(parent: Level | null, depth: number, isObject: boolean, rules: JsonRules): Level {
  const continues = parent?.isFreeForm ?? false;
  const begins = !continues && parent?.isObject === true && rules.freeForm.has(parent.key);
  return {
    isObject,
    isFreeForm: continues || begins,
    maxDepth: begins ? depth + rules.freeFormDepth : (parent?.maxDepth ?? rules.depth),
    keys: [],
    keySet: null,
    expectsKey: isObject,
    key: "",
    index: 0,
  };
}

/** Takes note of a key, and says what is wrong with it. */
function enter(level: Level, key: string, rules: JsonRules): JsonFaultKind | null {
  level.expectsKey = false;
  level.key = key;
  if (!level.isFreeForm && forbiddenKeys.has(key)) return "forbidden-key";
  if (level.keySet === null && level.keys.length === fewKeys) level.keySet = new Set(level.keys);
  if (level.keySet?.has(key) ?? level.keys.includes(key)) return "duplicate-key";
  level.keySet?.add(key);
  return level.keys.push(key) > rules.keys ? "keys" : null;
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
