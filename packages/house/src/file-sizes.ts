import { posix } from "node:path";
import type { ESTree } from "vite";
import { type SourceFile, visit } from "./source-file.ts";

export interface FunctionLength {
  readonly name: string;
  readonly path: string;
  /** From the first to the last line of the function, including nested functions. */
  readonly lines: number;
  /** The same without the functions that it declares or that are members of its objects. */
  readonly ownLines: number;
}

/** The length of each function in a file: declarations, expressions, arrows and methods. */
export function functionLengths(file: SourceFile): readonly FunctionLength[] {
  const found: MeasuredFunction[] = [];
  const measure = (
    { start, end }: { readonly start: number; readonly end: number },
    ownName: string | undefined,
  ) => {
    const before = file.text.slice(0, start).slice(-80);
    const name = ownName ?? /([\w$]+)\s*(?:<[^>]*>)?\s*[=:(]?\s*(?:async\s*)?$/.exec(before)?.[1];
    const isMember = ownName !== undefined || /(?:[=:]|\b[\w$]+)\s*(?:async\s*)?$/.test(before);
    const lines = file.text.slice(start, end).split("\n").length;
    found.push({ name: name ?? "(anonymous)", start, end, lines, isMember });
  };
  visit(file, {
    FunctionDeclaration: (node) => measure(node, node.id?.name),
    FunctionExpression: (node) => measure(node, node.id?.name),
    ArrowFunctionExpression: (node) => measure(node, undefined),
  });
  return found.map(({ name, lines, ...range }) => ({
    name,
    path: file.path,
    lines,
    ownLines: membersOf(range, found).reduce((rest, member) => rest - member.lines, lines),
  }));
}

interface MeasuredFunction {
  readonly name: string;
  readonly start: number;
  readonly end: number;
  readonly lines: number;
  /** Whether it has a name of its own and isn't a callback. */
  readonly isMember: boolean;
}

type Range = Pick<MeasuredFunction, "start" | "end">;

/** The outermost functions of several lines that a function declares. */
function membersOf(outer: Range, all: readonly MeasuredFunction[]): readonly MeasuredFunction[] {
  const contains = (a: Range, b: Range) =>
    a.start <= b.start && b.end <= a.end && a.end - a.start > b.end - b.start;
  const inside = all.filter((one) => one.isMember && one.lines > 1 && contains(outer, one));
  return inside.filter((one) => !inside.some((other) => contains(other, one)));
}

const minLines = 60;

/**
 * Files under 60 lines with exactly one importer, as `small.ts → importer.ts`: each is a paragraph of its importer.
 * Exceptions are entry points, files that an entry point re-exports, files loaded on demand, and data tables.
 */
export function mergeCandidates(
  files: readonly SourceFile[],
  entryPoints: ReadonlySet<string>,
): readonly string[] {
  const importers = new Map<string, Set<string>>();
  const exempt = new Set(entryPoints);
  for (const file of files) {
    const target = (specifier: string) => posix.join(posix.dirname(file.path), specifier);
    for (const specifier of file.imports.filter((from) => from.startsWith(".")))
      importers.set(
        target(specifier),
        (importers.get(target(specifier)) ?? new Set()).add(file.path),
      );
    for (const specifier of ownLoads(file, entryPoints.has(file.path)))
      exempt.add(target(specifier));
  }
  return files.flatMap((file) => {
    const [importer, ...others] = importers.get(file.path) ?? [];
    if (importer === undefined || others.length > 0 || exempt.has(file.path)) return [];
    const isShort = file.text.trimEnd().split("\n").length < minLines;
    return isShort && !isDataTable(file) ? [`${file.path} → ${importer}`] : [];
  });
}

/** The specifiers that a file loads on demand and, if it is an entry point, those that it re-exports from. */
function ownLoads(file: SourceFile, isEntryPoint: boolean): readonly string[] {
  const found: string[] = [];
  const add = (source: ESTree.Expression | null) => {
    if (source?.type === "Literal" && typeof source.value === "string") found.push(source.value);
  };
  visit(file, {
    ImportExpression: ({ source }) => add(source),
    ExportNamedDeclaration: ({ source }) => {
      if (isEntryPoint) add(source);
    },
    ExportAllDeclaration: ({ source }) => {
      if (isEntryPoint) add(source);
    },
  });
  return found;
}

/** Whether a file declares data and types, but no function: a constant object or list is its content. */
function isDataTable(file: SourceFile): boolean {
  let tables = 0;
  let functions = 0;
  const countFunction = () => {
    functions++;
  };
  visit(file, {
    VariableDeclarator({ init }) {
      const value =
        init?.type === "TSAsExpression" || init?.type === "TSSatisfiesExpression"
          ? init.expression
          : init;
      if (value?.type === "ObjectExpression" || value?.type === "ArrayExpression") tables++;
    },
    FunctionDeclaration: countFunction,
    FunctionExpression: countFunction,
    ArrowFunctionExpression: countFunction,
  });
  return tables > 0 && functions === 0;
}
