import { type SourceFile, visit } from "./source-file.ts";

/** Whether a file calls a function of this name that it imported from this module. */
export function callsImported(file: SourceFile, name: string, from: RegExp): boolean {
  const imported = file.program.body.some(
    (statement) =>
      statement.type === "ImportDeclaration" &&
      from.test(statement.source.value) &&
      statement.specifiers.some((specifier) => specifier.local.name === name),
  );
  let called = false;
  visit(file, {
    CallExpression(node) {
      if (node.callee.type === "Identifier" && node.callee.name === name) called = true;
    },
  });
  return imported && called;
}
