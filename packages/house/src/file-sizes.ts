import { type SourceFile, visit } from "./source-file.ts";

export interface FunctionLength {
  readonly name: string;
  readonly path: string;
  /** Lines from the first to the last of the function, those of functions inside included. */
  readonly lines: number;
}

interface Spanned {
  readonly start: number;
  readonly end: number;
}

/** How long each function of a file is: declarations, expressions, arrows and methods. */
export function functionLengths(file: SourceFile): readonly FunctionLength[] {
  const found: FunctionLength[] = [];
  const measure = (node: Spanned, given: string | undefined) => {
    const before = /([\w$]+)\s*(?:<[^>]*>)?\s*[=:(]?\s*(?:async\s*)?$/;
    const name = given ?? before.exec(file.text.slice(0, node.start).slice(-80))?.[1];
    const lines = file.text.slice(node.start, node.end).split("\n").length;
    found.push({ name: name ?? "(anonymous)", path: file.path, lines });
  };
  visit(file, {
    FunctionDeclaration: (node) => measure(node, node.id?.name),
    FunctionExpression: (node) => measure(node, node.id?.name),
    ArrowFunctionExpression: (node) => measure(node, undefined),
  });
  return found;
}
