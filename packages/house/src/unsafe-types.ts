import { place, type Rule, visit } from "./source-file.ts";

/** No `any`, no cast through `unknown`, no non-null `!`, no switched-off check. */
export const unsafeTypes: Rule = (file) => {
  const problems: string[] = [];
  const report = (node: { readonly start: number }, what: string) =>
    problems.push(`${place(file, node)} uses ${what}`);
  visit(file, {
    TSAnyKeyword: (node) => report(node, "any"),
    TSNonNullExpression: (node) => report(node, "a non-null assertion"),
    TSAsExpression(node) {
      const inner = node.expression;
      if (inner.type === "TSAsExpression" && inner.typeAnnotation.type === "TSUnknownKeyword") {
        report(node, "as unknown as");
      }
    },
  });
  for (const comment of file.comments) {
    if (/@ts-(ignore|nocheck|expect-error)/.test(comment.value))
      report(comment, "a switched-off check");
  }
  return problems;
};
