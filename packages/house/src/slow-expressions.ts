import { analyse } from "scslre";
import type { ESTree } from "vite";
import { place, type Rule, visit } from "./source-file.ts";

/**
 * A regular expression is decided in time that grows with the length of its text alone: nobody who sends a text may
 * hold up the process with it. Expressions are literals, since what is put together at run time cannot be looked at.
 */
export const slowExpressions: Rule = (file) => {
  const problems: string[] = [];
  const report = (node: { readonly start: number }, what: string) =>
    problems.push(`${place(file, node)} ${what}`);
  const reportMade = (node: ESTree.NewExpression | ESTree.CallExpression): void => {
    if (node.callee.type === "Identifier" && node.callee.name === "RegExp")
      report(node, "makes a regular expression at run time");
  };
  visit(file, {
    Literal(node) {
      if (!("regex" in node)) return;
      const { pattern, flags } = node.regex;
      for (const { type, character } of reportsOf(pattern, flags))
        report(node, `takes more than linear time on many ${character.pick} (${type})`);
    },
    NewExpression: reportMade,
    CallExpression: reportMade,
  });
  return problems;
};

function reportsOf(source: string, flags: string) {
  return analyse({ source, flags }, { maxReports: 1 }).reports;
}
