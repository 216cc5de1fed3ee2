import { type Problem, pathOf, problemAt } from "@tollgate/core/schemas";

/** The variables that a configuration file may name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Data whose strings have their variables filled in. */
export interface FilledIn {
  readonly value: unknown;
  readonly problems: readonly Problem[];
  /** The value of each variable that the file uses. */
  readonly used: ReadonlyMap<string, string>;
}

const maxLevels = 32;
const maxValues = 100_000;
const maxCharacters = 4_194_304;

/**
 * Copies data and replaces `${NAME}` and `${NAME:-default}` in strings, never in the names of members; `$${` becomes a
 * literal `${`. An empty variable counts as undefined. Values aren't parsed, so no variable can add a member. Aliases may
 * expand to at most 32 levels, 100,000 values and 4 MiB of text.
 */
export function fillIn(data: unknown, environment: Environment): FilledIn {
  const problems: Problem[] = [];
  const used = new Map<string, string>();
  let values = 0;
  let characters = 0;

  /** Counts before joining texts, because a file can use a long value very often. */
  function countCharacters(length: number): void {
    characters += length;
    if (characters > maxCharacters) throw new TooLarge();
  }

  function fillText(text: string, path: string): string {
    const filled = replaceVariables(text, (name, fallback) => {
      const value = Object.hasOwn(environment, name) ? environment[name] : undefined;
      if (value) used.set(name, value);
      const found = value || fallback;
      countCharacters(found?.length ?? 0);
      if (found === null)
        problems.push(
          problemAt(path, `uses ${name}, which is undefined or empty: set this variable`),
        );
      return found;
    });
    if (filled !== null) return filled;
    problems.push(
      problemAt(
        path,
        `has a \${ that doesn't begin a variable: write \${NAME}, or $\${ for a literal \${`,
      ),
    );
    return text;
  }

  function copyOf(value: unknown, keys: readonly PropertyKey[]): unknown {
    values++;
    if (keys.length > maxLevels || values > maxValues) throw new TooLarge();
    if (typeof value === "string") {
      const text = fillText(value, pathOf("", keys));
      countCharacters(value.length);
      return text;
    }
    if (Array.isArray(value)) return value.map((item, at) => copyOf(item, [...keys, at]));
    if (typeof value !== "object" || value === null) return value;
    // Keeps a member named __proto__ as a member, so that the schema refuses it.
    return Object.fromEntries(
      Object.entries(value).map(([key, member]) => [key, copyOf(member, [...keys, key])]),
    );
  }

  try {
    return { value: copyOf(data, []), problems, used };
  } catch (thrown) {
    if (!(thrown instanceof TooLarge)) throw thrown;
    const message = `The file, with its aliases and variables expanded, has more than ${maxLevels} levels, 100,000 values or 4 MiB of text.`;
    return { value: null, problems: [{ path: "", message }], used };
  }
}

class TooLarge extends Error {}

/**
 * Null if a `${` doesn't start a variable, or is inside a default: that would end with the inner variable. A variable without
 * a value stays as written.
 */
function replaceVariables(
  text: string,
  lookUp: (name: string, fallback: string | null) => string | null,
): string | null {
  let filled = "";
  let read = 0;
  for (let at = text.indexOf("${"); at >= 0; at = text.indexOf("${", read)) {
    if (text[at - 1] === "$" && at > read) {
      filled += `${text.slice(read, at - 1)}\${`;
      read = at + 2;
      continue;
    }
    const end = text.indexOf("}", at);
    const inner = end < 0 ? "" : text.slice(at + 2, end);
    const [, name, fallback = null] =
      /^([A-Za-z_]\w{0,127})(?::-((?!.*\$\{).*))?$/s.exec(inner) ?? [];
    if (name === undefined) return null;
    filled += text.slice(read, at) + (lookUp(name, fallback) ?? text.slice(at, end + 1));
    read = end + 1;
  }
  return filled + text.slice(read);
}
