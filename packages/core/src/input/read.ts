import type { ErrorCode } from "../errors/codes.ts";
import { GatewayError, type Problem } from "../errors/gateway-error.ts";
import * as z from "./z.ts";

/** A schema of checked input. */
export type Schema<Value> = z.ZodMiniType<Value, unknown>;

/** The schema of a member that may be absent. */
export type OptionalMember<Value> = z.ZodMiniExactOptional<Schema<Value>>;

/** How input that breaks its schema is reported. */
export interface ReadOptions {
  /** Default `invalid_argument`. */
  readonly code?: Extract<ErrorCode, "invalid_argument" | "invalid_configuration">;
  /** The noun for an unknown member, such as `option` or `filter`. Default `argument`. */
  readonly noun?: string;
  /** Comes before every path, such as `budgets`. */
  readonly path?: string;
  /** Top-level members that aren't data and stay themselves. */
  readonly passThrough?: readonly string[];
  /** Whether a member that is undefined counts as absent. Default true. */
  readonly allowUndefined?: boolean;
}

/** How a filter is read. */
export const filters: ReadOptions = { noun: "filter" };

/** A checked value, or its problems. */
export type ReadResult<Value> =
  | { readonly value: Value; readonly problems: readonly [] }
  | { readonly value: null; readonly problems: readonly Problem[] };

/**
 * Reads input by its schema. The result shares no plain object or list with the input, so it can't change later.
 * @throws GatewayError with every problem and its path; the first one is its `param`
 */
export function read<Value>(
  schema: Schema<Value>,
  input: unknown,
  options: ReadOptions = {},
): Value {
  const result = tryRead(schema, input, options);
  if (result.problems.length > 0 || result.value === null)
    throw invalidInput(result.problems, options.code);
  return result.value;
}

/** As `read`, with the problems instead of an error. */
export function tryRead<Value>(
  schema: Schema<Value>,
  input: unknown,
  { noun = "argument", path = "", passThrough = [], allowUndefined = true }: ReadOptions = {},
): ReadResult<Value> {
  // Absent input counts as an empty object, so each required member is reported.
  const copy = plainCopy(input ?? {}, passThrough);
  const missing = allowUndefined ? [] : copy.missing;
  const result = z.safeParse(schema, copy.value, { reportInput: true, error: () => noMessage });
  if (result.success && copy.forbidden.length === 0 && missing.length === 0)
    return { value: result.data, problems: [] };
  const issues = result.success ? [] : result.error.issues;
  return {
    value: null,
    problems: [
      ...copy.forbidden.map((keys) => unknownMember(noun, pathOf(path, keys))),
      ...missing.map((keys) =>
        problemAt(pathOf(path, keys), "is undefined: give it a value or leave it out"),
      ),
      ...issues.flatMap((issue) => problemsOf(issue, { noun, path })),
    ],
  };
}

/** One error for all problems. */
export function invalidInput(
  problems: readonly Problem[],
  code: NonNullable<ReadOptions["code"]> = "invalid_argument",
): GatewayError {
  const param = problems[0]?.path ?? "";
  const message = problems.map((problem) => problem.message).join("\n");
  return new GatewayError(code, message, { problems, ...(param === "" ? {} : { param }) });
}

/** A rule that a value breaks, as a sentence about its path. */
export function problemAt(path: string, rule: string): Problem {
  return { path, message: `${path === "" ? "The argument" : `\`${path}\``} ${rule}.` };
}

function unknownMember(noun: string, path: string): Problem {
  return { path, message: `Unknown ${noun}: ${path}.` };
}

type Issue = z.core.$ZodIssue;
type Place = Required<Pick<ReadOptions, "noun" | "path">>;

function problemsOf(issue: Issue, { noun, path }: Place): readonly Problem[] {
  const at = pathOf(path, issue.path);
  if (issue.code === "unrecognized_keys")
    return issue.keys.map((key) => unknownMember(noun, pathOf(at, [key])));
  const closest = issue.code === "invalid_union" ? closestAlternative(issue) : null;
  if (closest !== null) return closest.flatMap((inner) => problemsOf(inner, { noun, path: at }));
  if (issue.input === undefined && issue.code !== "custom") return [problemAt(at, "is required")];
  return [problemAt(at, issue.message === noMessage ? ruleOf(issue) : issue.message)];
}

/** Marks an issue without its own message. Set for each parse, because a host that uses zod can set global messages. */
const noMessage = "";

function ruleOf(issue: Issue): string {
  switch (issue.code) {
    case "invalid_type":
      return `must be ${names.get(issue.expected) ?? `a ${issue.expected}`}`;
    case "invalid_value":
      return `must be ${oneOf(issue.values)}`;
    case "too_small":
      return issue.origin === "array"
        ? `must have at least ${issue.minimum} items`
        : `must be at least ${issue.minimum}`;
    case "too_big":
      return issue.origin === "array"
        ? `must have at most ${issue.maximum} items`
        : `must be at most ${issue.maximum}`;
    case "invalid_union":
      return unionRule(issue);
    case "invalid_key":
      return issue.issues.map(wordsOf).join(" and ");
    default:
      return "is invalid";
  }
}

function oneOf(values: readonly unknown[]): string {
  const words = values.map(String);
  return words.length > 2 ? `one of ${words.join(", ")}` : words.join(" or ");
}

/** The issues within the only alternative that accepts this type of value. */
function closestAlternative({
  errors,
  message,
}: Extract<Issue, { code: "invalid_union" }>): readonly Issue[] | null {
  if (message !== noMessage) return null;
  const inside = errors.filter((issues) =>
    issues.every(({ code, path }) => path.length > 0 || code === "unrecognized_keys"),
  );
  const [closest] = inside;
  return inside.length === 1 && closest !== undefined && closest.length > 0 ? closest : null;
}

/** If only one alternative accepts this type of value, its rule is clearer than a list of types. */
function unionRule(issue: Extract<Issue, { code: "invalid_union" }>): string {
  const { errors, input } = issue;
  // The discriminating member names no alternative.
  if ("options" in issue && Array.isArray(issue.options)) return `must be ${oneOf(issue.options)}`;
  const rules = errors.flatMap(([first]) => (first === undefined ? [] : [wordsOf(first)]));
  const deeper = errors.find(([first]) => first !== undefined && first.code !== "invalid_type");
  const [closest] = deeper ?? [];
  return closest !== undefined && typeof input !== "object"
    ? wordsOf(closest)
    : [...new Set(rules)].join(" or ").replaceAll(" or must be ", " or ");
}

function wordsOf(issue: Issue): string {
  return issue.message === noMessage ? ruleOf(issue) : issue.message;
}

const names: ReadonlyMap<string, string> = new Map([
  ["string", "a string"],
  ["number", "a number"],
  ["int", "a whole number"],
  ["boolean", "true or false"],
  ["array", "a list"],
  ["object", "an object"],
  ["record", "an object"],
  ["function", "a function"],
]);

/** The path of a member as problems name it: `budgets[0].scope.user`. A long or odd key is quoted and cut. */
export function pathOf(path: string, keys: readonly PropertyKey[]): string {
  return keys.reduce<string>((text, key) => {
    if (typeof key === "number") return `${text}[${key}]`;
    const name = String(key);
    if (!/^[\w$-]{1,64}$/.test(name))
      return `${text}[${JSON.stringify(name.slice(0, 64).toWellFormed())}]`;
    return text === "" ? name : `${text}.${name}`;
  }, path);
}

/** A copy of input, and the paths of members that data cannot have. */
interface PlainCopy {
  readonly value: unknown;
  /** Members named `__proto__`, which zod would drop silently. */
  readonly forbidden: readonly (readonly PropertyKey[])[];
  /** Members that are undefined. */
  readonly missing: readonly (readonly PropertyKey[])[];
}

const maxDepth = 32;

/**
 * Copies plain objects and lists, without undefined members. Anything else isn't copied: functions, instances of classes,
 * the top-level members named in `passThrough`, and everything below 32 levels, where no schema expects data.
 */
function plainCopy(input: unknown, passThrough: readonly string[] = []): PlainCopy {
  const forbidden: PropertyKey[][] = [];
  const missing: PropertyKey[][] = [];

  function copyOf(value: unknown, path: readonly PropertyKey[]): unknown {
    if (path.length > maxDepth) return value;
    if (Array.isArray(value)) return value.map((item, at) => copyOf(item, [...path, at]));
    if (!isPlain(value)) return value;
    const copy: Record<string, unknown> = {};
    for (const [key, member] of Object.entries(value)) {
      if (key === "__proto__") forbidden.push([...path, key]);
      else if (path.length === 0 && passThrough.includes(key)) copy[key] = member;
      else if (member === undefined) missing.push([...path, key]);
      else copy[key] = copyOf(member, [...path, key]);
    }
    return copy;
  }

  return { value: copyOf(input, []), forbidden, missing };
}

function isPlain(value: unknown): value is object {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
