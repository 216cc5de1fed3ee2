import type { ESTree } from "vite";
import { place, type Rule } from "./source-file.ts";

const collections = new Set(["Map", "Set", "WeakMap", "WeakSet"]);

/** A collection that starts empty at module level can only be there to be filled. */
function startsEmpty(value: ESTree.Expression | null): boolean {
  if (value?.type !== "NewExpression" || value.callee.type !== "Identifier") return false;
  return collections.has(value.callee.name) && value.arguments.length === 0;
}

/** No module holds state: neither `let`, nor a collection to be filled. */
export const moduleState: Rule = (file) =>
  file.program.body.flatMap((statement) => {
    const declared =
      statement.type === "ExportNamedDeclaration" ? statement.declaration : statement;
    if (declared?.type !== "VariableDeclaration") return [];
    const mutable =
      declared.kind !== "const" || declared.declarations.some(({ init }) => startsEmpty(init));
    return mutable ? [`${place(file, statement)} keeps state in the module`] : [];
  });
