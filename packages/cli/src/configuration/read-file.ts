import { isScalar, type Node, type YAMLMap } from "yaml";
import { readBounded } from "../secrets.ts";
import { fileProblem } from "./configuration-error.ts";

const maxBytes = 1_048_576;
/** The parser looks for the anchor of each among all others. */
const maxAliases = 1_000;

/**
 * Reads a JSON or YAML file as an object; null if it is empty. Errors give the position and never quote the text, which may
 * contain a secret.
 * @throws ConfigurationError if the file can't be read, is larger than 1 MiB or isn't UTF-8. Also for wrong syntax, a
 * repeated member, an alias inside its own anchor, more than 1,000 aliases, or a list or a value instead of an object
 */
export async function readDataFile(file: string): Promise<object | null> {
  const text = await readText(file);
  const value = /\.json$/i.test(file) ? parseJson(file, text) : await parseYaml(file, text);
  if (typeof value === "object" && !Array.isArray(value)) return value;
  throw fileProblem(file, "The file must be an object.");
}

async function readText(file: string): Promise<string> {
  const bytes = await readBounded(file, maxBytes).catch((thrown: unknown) => {
    const code = thrown instanceof Error && "code" in thrown ? String(thrown.code) : "unknown";
    throw fileProblem(file, `The file can't be read (${code}).`);
  });
  if (bytes.length > maxBytes) throw fileProblem(file, "The file is larger than 1 MiB.");
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw fileProblem(file, "The file isn't UTF-8 text.");
  }
}

function parseJson(file: string, text: string): unknown {
  const value = parsedJson(file, text);
  const line = lineOfRepeatedMember(text);
  if (line === null) return value;
  throw fileProblem(file, `An object has the same member twice (line ${line}).`);
}

function parsedJson(file: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (thrown) {
    const place = /\((line \d+ column \d+)\)$/.exec(thrown instanceof Error ? thrown.message : "");
    throw fileProblem(file, `The file isn't valid JSON${place ? ` (${place[1]})` : ""}.`);
  }
}

/** The text must be valid JSON. `JSON.parse` silently keeps the last of repeated members. */
function lineOfRepeatedMember(text: string): number | null {
  const open: Set<string>[] = [];
  let line = 1;
  let last: string | null = null;
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\]:\n]/g)) {
    if (token === "\n") line++;
    else if (token === "{" || token === "[") open.push(new Set());
    else if (token === "}" || token === "]") open.pop();
    else if (token === ":" && last !== null) {
      const name = String(JSON.parse(last));
      const members = open.at(-1);
      if (members?.has(name)) return line;
      members?.add(name);
    }
    if (token !== "\n") last = token;
  }
  return null;
}

async function parseYaml(file: string, text: string): Promise<unknown> {
  const { LineCounter, parseDocument, visit } = await import("yaml");
  const lines = new LineCounter();
  const placeOf = (offset: number): string => {
    const { line, col } = lines.linePos(offset);
    return `line ${line} column ${col}`;
  };
  const refuse = (what: string, node: Node): never => {
    throw fileProblem(file, `${what} (${placeOf(node.range?.[0] ?? 0)}).`);
  };
  const document = orTooDeep(file, () =>
    parseDocument(text, {
      lineCounter: lines,
      prettyErrors: false,
      schema: "core",
      merge: false,
      resolveKnownTags: false,
      stringKeys: true,
      // The parser compares each member with all others; `requireDistinct` needs one pass.
      uniqueKeys: false,
      logLevel: "error",
    }),
  );
  const [fault] = [...document.errors, ...document.warnings];
  if (fault !== undefined) {
    const reason = fault.code.toLowerCase().replaceAll("_", " ");
    throw fileProblem(file, `The file isn't valid YAML (${placeOf(fault.pos[0])}: ${reason}).`);
  }
  // `alias.resolve` would walk the document once for each alias.
  const anchored = new Map<string, Node>();
  let aliases = 0;
  const note = (node: Node & { readonly anchor?: string }): void => {
    if (node.anchor !== undefined) anchored.set(node.anchor, node);
  };
  orTooDeep(file, () =>
    visit(document, {
      Map(_, map) {
        note(map);
        requireDistinct(map, refuse);
      },
      Seq: (_, list) => note(list),
      Scalar: (_, scalar) => note(scalar),
      Alias(_, alias, ancestors) {
        if (++aliases > maxAliases) refuse("The file has more than 1,000 aliases", alias);
        const target = anchored.get(alias.source);
        if (target === undefined) refuse("An alias has no anchor before it", alias);
        if (ancestors.some((ancestor) => ancestor === target))
          refuse("An alias is inside its own anchor", alias);
      },
    }),
  );
  // Aliases share their value here; `fillIn` limits their expanded size.
  return orTooDeep(file, () => document.toJS({ maxAliasCount: -1 }));
}

function requireDistinct(map: YAMLMap, refuse: (what: string, node: Node) => never): void {
  const seen = new Set<unknown>();
  for (const { key } of map.items) {
    if (!isScalar(key)) continue;
    if (seen.has(key.value)) refuse("An object has the same member twice", key);
    seen.add(key.value);
  }
}

/** The parser recurses once per level, so deep nesting overflows the stack. */
function orTooDeep<Result>(file: string, parse: () => Result): Result {
  try {
    return parse();
  } catch (thrown) {
    if (!(thrown instanceof RangeError)) throw thrown;
    throw fileProblem(file, "The file is nested too deeply.");
  }
}
