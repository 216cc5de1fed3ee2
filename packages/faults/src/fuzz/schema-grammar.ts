import { type Grammar, pick, type Random } from "./grammar.ts";

/** A JSON Schema, as far as the product's own schemas use it. */
type JsonSchema = Readonly<Record<string, unknown>>;

/** A grammar of JSON texts for a schema. */
export interface SchemaGrammar extends Grammar {
  /** The path of every member that the schema describes, such as `messages[].role`. */
  readonly paths: readonly string[];
}

/** Words for members whose schema only says that they are texts. */
export type WordsOf = (member: string) => readonly [string, ...(readonly string[])] | null;

/** The faults that a text may contain. A fault replaces or adds to a value that would be valid. */
const faults = [
  "wrong type",
  "null",
  "missing member",
  "unknown member",
  "repeated member",
  "forbidden member",
  "empty",
  "inexact number",
  "infinite number",
  "half a surrogate pair",
  // The faults from here on make long texts, which take long to read.
  "long text",
  "deep value",
  "many items",
] as const;
const lightFaults = faults.indexOf("long text");
const heavyShare = 0.05;
type Fault = (typeof faults)[number];

/** Marks that the text of a value contains, and what the JSON then contains instead. */
const marks = { inexact: '"\uF800"', infinite: '"\uF801"', repeated: "\uF802" } as const;

interface Writing {
  readonly random: Random;
  /** The probability of a fault at each value. */
  readonly faultRate: number;
  /** How many faults may follow. */
  faults: number;
  depth: number;
}

type WriteValue = (writing: Writing) => unknown;

const maxDepth = 10;

/** Writes JSON that a schema accepts, and in half of the texts a few values that it doesn't. */
export function schemaGrammar(schema: JsonSchema, wordsOf: WordsOf): SchemaGrammar {
  const rules: string[] = faults.map((fault) => `fault: ${fault}`);
  const paths = new Set<string>();
  let uses = new Uint32Array(0);
  const note = (rule: number): void => {
    uses[rule] = (uses[rule] ?? 0) + 1;
  };
  const addRule = (name: string): number => rules.push(name) - 1;
  const compiler = new Compiler({ addRule, note, paths, wordsOf });
  const write = compiler.compile(schema, "", "");
  uses = new Uint32Array(rules.length);
  return {
    rules,
    paths: [...paths],
    uses,
    write(random) {
      const faults = Math.floor(random() * 4);
      const faultRate = random() * 0.2;
      const text = JSON.stringify(write({ random, faultRate, faults, depth: 0 }));
      return Buffer.from(withFaults(text));
    },
  };
}

function withFaults(text: string): string {
  if (!text.includes("\uF800") && !text.includes("\uF801") && !text.includes("\uF802")) return text;
  return text
    .replaceAll(marks.inexact, "12345678901234567890")
    .replaceAll(marks.infinite, "-1e999")
    .replaceAll(marks.repeated, "");
}

interface Member {
  readonly name: string;
  readonly rule: number;
  readonly write: WriteValue;
}

interface CompilerParts {
  readonly addRule: (name: string) => number;
  readonly note: (rule: number) => void;
  readonly paths: Set<string>;
  readonly wordsOf: WordsOf;
}

/** Compiles schemas to functions that write values, because a run writes millions. */
class Compiler {
  readonly #parts: CompilerParts;

  constructor(parts: CompilerParts) {
    this.#parts = parts;
  }

  /** `member` is the name of the member that has this value. */
  compile(schema: JsonSchema, path: string, member: string): WriteValue {
    const write = this.#valid(schema, path, member);
    return (writing) => {
      if (writing.faults > 0 && writing.random() < writing.faultRate)
        return this.#faulty(writing, write);
      return write(writing);
    };
  }

  #valid(schema: JsonSchema, path: string, member: string): WriteValue {
    const alternatives = listOf(schema["anyOf"] ?? schema["oneOf"]);
    if (alternatives.length > 0) return this.#choice(alternatives, path, member);
    if ("const" in schema) return () => schema["const"];
    const values = listOf(schema["enum"]);
    if (values.length > 0) return this.#oneOf(values, path);
    switch (schema["type"]) {
      case "object":
        return this.#object(schema, path);
      case "array":
        return this.#array(schema, path, member);
      case "string":
        return this.#text(schema, member);
      case "integer":
      case "number":
        return numberIn(schema);
      case "boolean":
        return ({ random }) => random() < 0.5;
      case "null":
        return () => null;
      default:
        return ({ random }) => pick(random, [null, 1, "any", [], {}, { any: [1] }]);
    }
  }

  #choice(alternatives: readonly unknown[], path: string, member: string): WriteValue {
    const compiled = alternatives.map((alternative, at) => ({
      rule: this.#parts.addRule(`${path || "body"} | ${at + 1}`),
      write: this.compile(schemaIn(alternative), path, member),
    }));
    return (writing) => {
      const chosen = compiled[Math.floor(writing.random() * compiled.length)];
      if (chosen === undefined) return null;
      this.#parts.note(chosen.rule);
      return chosen.write(writing);
    };
  }

  #oneOf(values: readonly unknown[], path: string): WriteValue {
    const rules = values.map((value) => this.#parts.addRule(`${path} = ${JSON.stringify(value)}`));
    return ({ random }) => {
      const at = Math.floor(random() * values.length);
      this.#parts.note(rules[at] ?? 0);
      return values[at];
    };
  }

  #object(schema: JsonSchema, path: string): WriteValue {
    const requiredNames = new Set(listOf(schema["required"]));
    const members: readonly Member[] = Object.entries(schemaIn(schema["properties"])).map(
      ([name, value]) => {
        const memberPath = path === "" ? name : `${path}.${name}`;
        this.#parts.paths.add(memberPath);
        return {
          name,
          rule: this.#parts.addRule(memberPath),
          write: this.compile(schemaIn(value), memberPath, name),
        };
      },
    );
    const required = members.filter(({ name }) => requiredNames.has(name));
    const optional = members.filter(({ name }) => !requiredNames.has(name));
    const maxSkip = Math.max(2, optional.length);
    const bases = listOf(schema["allOf"]).map((base) => this.#valid(schemaIn(base), path, ""));
    return (writing) => {
      const value: Record<string, unknown> = {};
      writing.depth++;
      for (const write of bases) Object.assign(value, write(writing));
      const add = ({ name, rule, write }: Member): void => {
        this.#parts.note(rule);
        value[name] = write(writing);
      };
      required.forEach(add);
      // Chooses how many to skip, because most members are left out.
      const skip = (): number => 1 + Math.floor(writing.random() ** 2 * 1.5 * maxSkip);
      if (writing.depth <= maxDepth)
        for (let at = skip() - 1; at < optional.length; at += skip()) {
          const member = optional[at];
          if (member) add(member);
        }
      writing.depth--;
      return value;
    };
  }

  #array(schema: JsonSchema, path: string, member: string): WriteValue {
    const write = this.compile(schemaIn(schema["items"]), `${path}[]`, member);
    const min = Number(schema["minItems"] ?? 0);
    return (writing) => {
      const count = min + Math.floor(writing.random() * (writing.depth > maxDepth ? 1 : 3));
      return Array.from({ length: count }, () => write(writing));
    };
  }

  #text(schema: JsonSchema, member: string): WriteValue {
    const words = this.#parts.wordsOf(member) ?? anyWords;
    const max = Number(schema["maxLength"] ?? Number.POSITIVE_INFINITY);
    return ({ random }) => pick(random, words).slice(0, max);
  }

  #faulty(writing: Writing, write: WriteValue): unknown {
    writing.faults--;
    const { random } = writing;
    const from = random() < heavyShare ? faults.length : lightFaults;
    const at = Math.floor(random() * from);
    this.#parts.note(at);
    return faultyValue(faults[at] ?? "null", writing, write);
  }
}

const anyWords = ["a", "Hello", "", "x y", "\u00e9\u{1F600}", "\u0000", "a/b/c", "0"] as const;

function numberIn(schema: JsonSchema): WriteValue {
  const min = Number(schema["minimum"] ?? 0);
  const max = Number(schema["maximum"] ?? 1_000);
  const isWhole = schema["type"] === "integer";
  return ({ random }) => {
    const value = min + random() * (max - min);
    return isWhole ? Math.round(value) : value;
  };
}

function faultyValue(fault: Fault, writing: Writing, write: WriteValue): unknown {
  const { random } = writing;
  const value = write(writing);
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  switch (fault) {
    case "wrong type":
      return pick<unknown>(random, [7, -0.5, "text", true, [], {}, [[]], { type: "x" }]);
    case "null":
      return null;
    case "long text":
      return "long ".repeat(1 + Math.floor(random() * 4_000));
    case "empty":
      return typeof value === "string" ? "" : Array.isArray(value) ? [] : {};
    case "inexact number":
      return "\uF800";
    case "infinite number":
      return "\uF801";
    case "half a surrogate pair":
      return `a${pick(random, ["\ud83d", "\udc00"])}b`;
    case "deep value":
      return deepValue(Math.floor(random() * 80), value);
    case "many items":
      return Array.from({ length: Math.floor(random() * 300) }, () => value);
    case "missing member":
      return isObject ? Object.fromEntries(Object.entries(value).slice(1)) : value;
    case "unknown member":
      return isObject ? { ...value, [pick(random, unknownNames)]: random() } : value;
    case "repeated member": {
      const [name] = isObject ? Object.keys(value) : [];
      return isObject && name !== undefined ? { ...value, [`${name}${marks.repeated}`]: 1 } : value;
    }
    case "forbidden member":
      return isObject
        ? { ...value, [pick(random, ["constructor", "prototype", "__proto__"])]: { polluted: 1 } }
        : value;
  }
}

const unknownNames = [
  "unknown",
  "x".repeat(100),
  "",
  "\u0000",
  "toString",
  "a.b",
  "\u202e",
] as const;

function deepValue(depth: number, value: unknown): unknown {
  let nested: unknown = value;
  for (let level = 0; level < depth; level++) nested = level % 2 === 0 ? [nested] : { a: nested };
  return nested;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function schemaIn(value: unknown): JsonSchema {
  return typeof value === "object" && value !== null ? { ...value } : {};
}
