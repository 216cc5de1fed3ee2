import { place, type Rule, visit } from "./source-file.ts";

const runners = new Set(["it", "test", "describe"]);
const escapes = new Set(["skip", "only", "todo", "skipIf", "runIf", "fails"]);

/** A suite that may be skipped is skipped one day: no test is skipped, chosen alone, or left to do. */
export const skippedTests: Rule = (file) => {
  const problems: string[] = [];
  visit(file, {
    MemberExpression(node) {
      if (node.object.type !== "Identifier" || node.property.type !== "Identifier") return;
      if (!runners.has(node.object.name) || !escapes.has(node.property.name)) return;
      problems.push(`${place(file, node)} uses ${node.object.name}.${node.property.name}`);
    },
  });
  return problems;
};
