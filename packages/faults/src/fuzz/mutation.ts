import { type Grammar, pick, type Random } from "./grammar.ts";

/** Changes bytes without any knowledge of their structure. */
interface Operator {
  readonly name: string;
  change(input: Buffer, random: Random, other: Buffer): Buffer;
}

/** Texts that parsers treat in a special way. */
const words = [
  "{",
  "}",
  "[",
  "]",
  ",",
  ":",
  '"',
  "\\",
  "\\u0000",
  "\\ud800",
  "null",
  "true",
  "1e999",
  "-0",
  "9007199254740993",
  "0.1",
  "__proto__",
  "constructor",
  "toString",
  "\r\n",
  "\n\n",
  "\r",
  "\0",
  "\u2028",
  "\ufeff",
  "data:",
  "data: [DONE]\n\n",
  "event: error\n",
  "id: \0\n",
  "retry: 1\n",
  ": \n",
  "/v1/",
  "..",
  "//",
  ";",
  "%2f",
  "\\",
  "?",
  "#",
  "Bearer ",
  "data:image/png;base64,",
  "*",
  "/",
] as const;

const maxBytes = 200_000;

const at = (input: Buffer, random: Random): number => Math.floor(random() * (input.length + 1));
const replaced = (input: Buffer, from: number, to: number, by: Uint8Array): Buffer =>
  Buffer.concat([input.subarray(0, from), by, input.subarray(to)]);
/** Short ranges mostly, and sometimes a long one. */
const end = (input: Buffer, from: number, random: Random): number =>
  Math.min(input.length, from + 1 + Math.floor(random() ** 3 * 256));

const operators: readonly [Operator, ...(readonly Operator[])] = [
  {
    name: "flip a bit",
    change(input, random) {
      const changed = Buffer.from(input);
      const place = Math.floor(random() * input.length);
      changed[place] = (changed[place] ?? 0) ^ (1 << Math.floor(random() * 8));
      return changed;
    },
  },
  {
    name: "replace a byte",
    change(input, random) {
      const changed = Buffer.from(input);
      changed[Math.floor(random() * input.length)] = Math.floor(random() * 256);
      return changed;
    },
  },
  {
    name: "delete",
    change(input, random) {
      const from = at(input, random);
      return replaced(input, from, end(input, from, random), Buffer.alloc(0));
    },
  },
  {
    name: "repeat",
    change(input, random) {
      const from = at(input, random);
      const range = input.subarray(from, end(input, from, random));
      const times = 1 + Math.floor(random() ** 4 * 200);
      return replaced(input, from, from, Buffer.concat(Array.from({ length: times }, () => range)));
    },
  },
  {
    name: "insert a word",
    change(input, random) {
      const from = at(input, random);
      return replaced(input, from, from, Buffer.from(pick(random, words)));
    },
  },
  {
    name: "overwrite with a word",
    change(input, random) {
      const from = at(input, random);
      const word = Buffer.from(pick(random, words));
      return replaced(input, from, Math.min(input.length, from + word.length), word);
    },
  },
  {
    name: "cut",
    change: (input, random) => Buffer.from(input.subarray(0, at(input, random))),
  },
  {
    name: "join with another",
    change: (input, random, other) =>
      Buffer.concat([input.subarray(0, at(input, random)), other.subarray(at(other, random))]),
  },
  {
    name: "insert a part of another",
    change(input, random, other) {
      const from = at(other, random);
      const place = at(input, random);
      return replaced(input, place, place, other.subarray(from, end(other, from, random)));
    },
  },
  {
    name: "change a number",
    change(input, random) {
      const text = input.toString("latin1");
      const found = [...text.matchAll(/\d+/g)];
      const number = found[Math.floor(random() * found.length)];
      if (number === undefined) return input;
      const by = pick(random, ["0", "-1", "256", "65537", "2147483648", "1e308", "1.5", ""]);
      return replaced(input, number.index, number.index + number[0].length, Buffer.from(by));
    },
  },
];

/** Changes inputs of a corpus, a few times each. `corpus` is read for every input. */
export function mutator(corpus: readonly [Buffer, ...(readonly Buffer[])]): Grammar {
  const uses = new Uint32Array(operators.length);
  return {
    rules: operators.map(({ name }) => name),
    uses,
    write(random) {
      let input = pick(random, corpus);
      const changes = 1 + Math.floor(random() ** 2 * 6);
      for (let change = 0; change < changes; change++) {
        const which = Math.floor(random() * operators.length);
        if (input.length === 0) return input;
        input = operators[which]?.change(input, random, pick(random, corpus)) ?? input;
        uses[which] = (uses[which] ?? 0) + 1;
      }
      return input.length > maxBytes ? input.subarray(0, maxBytes) : input;
    },
  };
}
