import type { ESTree } from "vite";
import { place, type Rule, visit } from "./source-file.ts";

const ambientMembers = new Set(["Date.now", "Math.random", "process.env", "crypto.randomUUID"]);

function memberName(node: ESTree.MemberExpression): string {
  if (node.object.type !== "Identifier") return "";
  if (node.property.type === "Identifier") return `${node.object.name}.${node.property.name}`;
  return node.property.type === "Literal" ? `${node.object.name}.${node.property.value}` : "";
}

/**
 * Time, chance, environment and console come in from outside; the kernel of core and the command
 * line are where they enter.
 */
export const ambientAccess: Rule = (file) => {
  if (/^packages\/(core\/src\/kernel|cli|house)\//.test(file.path)) return [];
  const problems: string[] = [];
  const report = (node: { readonly start: number }, what: string) =>
    problems.push(`${place(file, node)} reaches for ${what}`);
  visit(file, {
    MemberExpression(node) {
      const name = memberName(node);
      if (ambientMembers.has(name) || name.startsWith("console.")) report(node, name);
    },
    NewExpression(node) {
      const isDate = node.callee.type === "Identifier" && node.callee.name === "Date";
      if (isDate && node.arguments.length === 0) report(node, "new Date()");
    },
    ImportSpecifier(node) {
      if (node.imported.type !== "Identifier" || node.imported.name !== "randomUUID") return;
      report(node, "randomUUID");
    },
  });
  return problems;
};
