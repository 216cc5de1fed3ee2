import { parseSync } from "vite";

/** One small change of a source file. It is active while the switch says so; until then, the file works as written. */
export interface Mutant {
  /** `core/src/kernel/digest.ts:12:7 a < b → a <= b`. */
  readonly id: string;
  readonly file: string;
  readonly kind: MutantKind;
  readonly start: number;
  readonly end: number;
  /** The source text in place of the text from `start` to `end`. */
  readonly replacement: string;
  /** The end of the text in which it may hide other mutants. It begins at `start`. */
  readonly hidesTo: number;
}

export type MutantKind =
  | "arithmetic"
  | "array"
  | "boolean"
  | "comparison"
  | "condition"
  | "early return"
  | "equality"
  | "logical operator"
  | "negation"
  | "number"
  | "result"
  | "statement"
  | "text";

/** The files of each area, and mutants to leave out. */
export interface Areas {
  /** Patterns of source files below `packages`. */
  readonly areas: Readonly<Record<string, readonly string[]>>;
  /** Mutants, without their positions, that no test can tell from the original. */
  readonly equivalent: readonly { readonly mutant: string; readonly why: string }[];
}

export function readAreas(json: string): Areas {
  return JSON.parse(json);
}

/** The file of a mutant and its change. */
export function withoutPosition(id: string): string {
  return id.replace(/:\d+:\d+ /, " ");
}

/**
 * The names of global functions that a file with mutants calls. The first tells whether a mutant, by number, is active.
 * The second returns its second argument, the value as written; the third is the mutant's value, or a function of it.
 */
export const [switchName, compareName] = ["__tollgateMutant", "__tollgateCompare"];

/** A node of the syntax tree, as far as mutants need it. */
interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [field: string]: unknown;
}

type Change = readonly [kind: MutantKind, node: Place, replacement: string];

/** A place in the source, and how far a mutant there may hide others. */
interface Place {
  readonly start: number;
  readonly end: number;
  readonly hidesTo?: number;
}

const swapped: Readonly<Record<string, readonly [MutantKind, string]>> = {
  "<": ["comparison", "<="],
  "<=": ["comparison", "<"],
  ">": ["comparison", ">="],
  ">=": ["comparison", ">"],
  "===": ["equality", "!=="],
  "!==": ["equality", "==="],
  "==": ["equality", "!="],
  "!=": ["equality", "=="],
  "&&": ["logical operator", "||"],
  "||": ["logical operator", "&&"],
  "??": ["logical operator", "&&"],
  "+": ["arithmetic", "-"],
  "-": ["arithmetic", "+"],
  "*": ["arithmetic", "/"],
  "/": ["arithmetic", "*"],
  "%": ["arithmetic", "*"],
  "+=": ["arithmetic", "-="],
  "-=": ["arithmetic", "+="],
  "++": ["arithmetic", "--"],
  "--": ["arithmetic", "++"],
};

/** Every mutant of a file, in its order. */
export function mutantsOf(file: string, source: string): readonly Mutant[] {
  const { program, errors } = parseSync(file, source);
  if (errors.length > 0) throw new Error(`${file} could not be parsed.`);
  const lineStarts = [0, ...[...source.matchAll(/\n/g)].map(({ index }) => index + 1)];
  const mutants: Mutant[] = [];
  const visit = (node: Node, parent: Node | null): void => {
    for (const [kind, { start, end, hidesTo = end }, replacement] of changesOf(
      node,
      parent,
      source,
    )) {
      const line = lineStarts.findLastIndex((lineStart) => lineStart <= start);
      const at = `${file}:${line + 1}:${start - (lineStarts[line] ?? 0) + 1}`;
      const change = `${brief(source.slice(start, end))} → ${brief(replacement)}`;
      mutants.push({ id: `${at} ${change}`, file, kind, start, end, replacement, hidesTo });
    }
    for (const child of childrenOf(node)) visit(child, node);
  };
  const root: unknown = program;
  if (isNode(root)) visit(root, null);
  return mutants;
}

/** The file with these mutants, each behind the switch with its number. */
export function withMutants(
  source: string,
  mutants: readonly (Mutant & { readonly number: number })[],
): string {
  const outermostFirst = [...mutants].sort((a, b) => a.start - b.start || b.end - a.end);
  let position = 0;
  const render = (end: number): string => {
    let text = "";
    for (;;) {
      const next = outermostFirst[0];
      if (next === undefined || next.start >= end) break;
      const same = outermostFirst.filter((one) => one.start === next.start && one.end === next.end);
      outermostFirst.splice(0, same.length);
      text += source.slice(position, next.start);
      position = next.start;
      const inner = render(next.end);
      text += same.reduce((sum, mutant) => switched(sum, mutant, source), inner);
    }
    text += source.slice(position, end);
    position = end;
    return text;
  };
  return render(source.length);
}

/** Splits mutants into groups that may be active together: none of them hides another of its group. */
export function independent<One extends Mutant>(
  mutants: readonly One[],
): readonly (readonly One[])[] {
  const groups: One[][] = [];
  const inOrder = [...mutants].sort(
    (a, b) => (a.file < b.file ? -1 : 1) * Number(a.file !== b.file) || a.start - b.start,
  );
  for (const mutant of inOrder) {
    const isFree = (last: One | undefined) =>
      last === undefined || last.file !== mutant.file || last.hidesTo < mutant.start;
    const group = groups.find((one) => isFree(one.at(-1)));
    if (group) group.push(mutant);
    else groups.push([mutant]);
  }
  return groups;
}

function switched(text: string, mutant: Mutant & { number: number }, source: string): string {
  const { number, kind, replacement } = mutant;
  const isActive = `${switchName}(${number})`;
  if (kind === "early return") return `if(${isActive})return;${text}`;
  if (kind === "statement") return `{if(!${isActive}){${text}}}`;
  const other = comparable(mutant, source);
  const asWritten = other === null ? text : `${compareName}(${number},(${text}),${other})`;
  return `(${isActive}?(${replacement}):(${asWritten}))`;
}

/** The mutant's value as an argument. Null if computing it as well could have effects. */
function comparable({ kind, start, end, replacement }: Mutant, source: string): string | null {
  if (kind === "condition" || kind === "result") return replacement;
  const text = source.slice(start, end);
  const isOperator = /^(comparison|equality|logical operator|negation)$/.test(kind);
  const hasEffects = /[\w\])>.]\s*\(|`|\+\+|--|\b(await|yield|new|delete)\b|[^=!<>]=[^=>]/.test(
    text,
  );
  return isOperator && !hasEffects ? `()=>(${replacement})` : null;
}

function changesOf(node: Node, parent: Node | null, source: string): readonly Change[] {
  const text = source.slice(node.start, node.end);
  switch (node.type) {
    case "BinaryExpression":
    case "LogicalExpression":
    case "AssignmentExpression":
    case "UpdateExpression":
      return operatorChanges(node, source);
    case "UnaryExpression":
      return node["operator"] === "!" && isNode(node["argument"])
        ? [["negation", node, textOf(node["argument"], source)]]
        : [];
    case "IfStatement":
    case "ConditionalExpression":
      return conditionChanges(node, ["true", "false"]);
    // A loop whose condition is always true never ends.
    case "WhileStatement":
    case "ForStatement":
      return conditionChanges(node, ["false"]);
    case "Literal":
      return literalChanges(node, parent, text);
    case "TemplateLiteral":
      return isProse(text) ? [] : [["text", node, '""']];
    case "ArrayExpression":
      return Array.isArray(node["elements"]) && node["elements"].length > 0
        ? [["array", node, "[]"]]
        : [];
    case "ReturnStatement":
      return isNode(node["argument"]) && !isUndefined(node["argument"])
        ? [["result", node["argument"], "undefined"]]
        : [];
    case "ThrowStatement":
    case "ExpressionStatement":
      return isRemovable(node) ? [["statement", node, ""]] : [];
    default:
      return isFunction(node) ? functionChanges(node) : [];
  }
}

function operatorChanges(node: Node, source: string): readonly Change[] {
  const operator = String(node["operator"]);
  const change = Object.hasOwn(swapped, operator) ? swapped[operator] : undefined;
  if (change === undefined) return [];
  const [kind, other] = change;
  const { left, right, argument } = node;
  if (isNode(argument)) {
    const name = textOf(argument, source);
    return [[kind, node, node["prefix"] === true ? other + name : name + other]];
  }
  if (!isNode(left) || !isNode(right)) return [];
  // Texts are only joined.
  if (kind === "arithmetic" && [left, right].some(isText)) return [];
  const [before, after] = [textOf(left, source), textOf(right, source)];
  const isAssignment = node.type === "AssignmentExpression";
  return [[kind, node, `${isAssignment ? before : `(${before})`} ${other} (${after})`]];
}

function conditionChanges(node: Node, values: readonly string[]): readonly Change[] {
  const { test } = node;
  if (!isNode(test)) return [];
  const place = { start: test.start, end: test.end, hidesTo: node.end };
  return values.map((value) => ["condition", place, value] as const);
}

function literalChanges(node: Node, parent: Node | null, text: string): readonly Change[] {
  const { value } = node;
  if (parent === null || isName(node, parent)) return [];
  if (typeof value === "boolean") return [["boolean", node, String(!value)]];
  if (typeof value === "number") return [["number", node, value === 0 ? "1" : "0"]];
  if (typeof value === "bigint") return [["number", node, value === 0n ? "1n" : "0n"]];
  // A condition that compares a text is itself mutated.
  if (typeof value !== "string" || parent.type === "BinaryExpression" || isProse(text)) return [];
  return [["text", node, value === "" ? '"text"' : '""']];
}

function functionChanges({ body, generator }: Node): readonly Change[] {
  if (!isNode(body) || generator === true) return [];
  if (body.type !== "BlockStatement")
    return isUndefined(body) ? [] : [["result", body, "undefined"]];
  const [first, second] = Array.isArray(body["body"]) ? body["body"] : [];
  // Without its only statement, a function returns early too.
  if (!isNode(first) || (second === undefined && /^(Return|Expression|Throw)/.test(first.type)))
    return [];
  const afterBrace = body.start + 1;
  const place = { start: afterBrace, end: afterBrace, hidesTo: body.end };
  return [["early return", place, "return"]];
}

function isRemovable({ type, expression, directive }: Node): boolean {
  if (type === "ThrowStatement") return true;
  if (typeof directive === "string" || !isNode(expression)) return false;
  const { callee } = expression;
  return !(isNode(callee) && callee.type === "Super");
}

/** Messages for people are not mutated. */
function isProse(text: string): boolean {
  return text.includes(" ");
}

/** A property's name or a module's, not a value. */
function isName(node: Node, parent: Node): boolean {
  if (/^(Import|Export)/.test(parent.type)) return true;
  return parent["key"] === node && parent["computed"] !== true;
}

function isText(node: Node): boolean {
  return node.type === "TemplateLiteral" || typeof node["value"] === "string";
}

function isUndefined(node: Node): boolean {
  return node.type === "Identifier" && node["name"] === "undefined";
}

function isFunction({ type }: Node): boolean {
  return /^(FunctionDeclaration|FunctionExpression|ArrowFunctionExpression)$/.test(type);
}

const typedExpressions = ["TSAsExpression", "TSSatisfiesExpression", "TSNonNullExpression"];

function childrenOf(node: Node): readonly Node[] {
  return Object.values(node)
    .flat()
    .filter(isNode)
    .filter(({ type }) => !type.startsWith("TS") || typedExpressions.includes(type));
}

function isNode(value: unknown): value is Node {
  return (
    typeof value === "object" && value !== null && typeof Reflect.get(value, "type") === "string"
  );
}

function textOf({ start, end }: Node, source: string): string {
  return source.slice(start, end);
}

function brief(text: string): string {
  const line = text.replaceAll(/\s+/g, " ");
  return line.length <= 60 ? line : `${line.slice(0, 40)}…${line.slice(-19)}`;
}
