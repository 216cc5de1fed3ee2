/** Random numbers from 0 up to 1. */
export type Random = () => number;

/** A grammar that writes inputs, and counts how often each of its rules was used. */
export interface Grammar {
  /** The name of every rule. Each alternative and each kind of fault is a rule. */
  readonly rules: readonly string[];
  /** How often each rule was used. */
  readonly uses: Uint32Array;
  write(random: Random): Buffer;
}

export function pick<Item>(random: Random, items: readonly [Item, ...(readonly Item[])]): Item {
  return items[Math.floor(random() * items.length)] ?? items[0];
}

/** The alternatives of each rule. `<name>` becomes an alternative of the rule `name`. */
export type Rules = Readonly<Record<string, readonly [string, ...(readonly string[])]>>;

/** The first character of 256 that each mean one raw byte, to write what isn't UTF-8. */
const rawBytes = 0xf700;
/** A rule writes its first alternative from this depth on, so every text ends. */
const maxDepth = 24;

/** A character that becomes one byte. */
export const rawByte = (value: number): string => String.fromCharCode(rawBytes + value);

/**
 * A grammar of texts. It starts with the rule `start`. The first alternative of a rule must come to an end by itself.
 */
export function textGrammar(rules: Rules): Grammar {
  const names: string[] = [];
  const compiled = new Map(
    Object.entries(rules).map(([name, alternatives]) => {
      const first = names.length;
      names.push(...alternatives.map((_, at) => `${name} ${at + 1}`));
      return [name, { first, alternatives: alternatives.map(partsOf) }] as const;
    }),
  );
  const uses = new Uint32Array(names.length);

  function expand(name: string, random: Random, depth: number): string {
    const rule = compiled.get(name);
    if (rule === undefined) throw new Error(`The grammar has no rule ${name}.`);
    const at = depth > maxDepth ? 0 : Math.floor(random() * rule.alternatives.length);
    uses[rule.first + at] = (uses[rule.first + at] ?? 0) + 1;
    let text = "";
    for (const [index, part] of (rule.alternatives[at] ?? []).entries())
      text += index % 2 === 0 ? part : expand(part, random, depth + 1);
    return text;
  }

  return { rules: names, uses, write: (random) => toBytes(expand("start", random, 0)) };
}

/** Literal text and names of rules in turn. */
function partsOf(alternative: string): readonly string[] {
  return alternative.split(/<([a-zA-Z]+)>/);
}

/** UTF-8, except for the characters that mean a raw byte. */
export function toBytes(text: string): Buffer {
  const parts = text.split(/([\uF700-\uF7FF]+)/);
  if (parts.length === 1) return Buffer.from(text);
  return Buffer.concat(
    parts.map((part, at) =>
      at % 2 === 0
        ? Buffer.from(part)
        : Buffer.from([...part].map((raw) => raw.charCodeAt(0) - rawBytes)),
    ),
  );
}
