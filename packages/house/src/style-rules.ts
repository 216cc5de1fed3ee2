import { analyse } from "scslre";
import type { ESTree } from "vite";
import { place, type Rule, visit } from "./source-file.ts";

const ambientMembers = new Set(["Date.now", "Math.random", "process.env", "crypto.randomUUID"]);

function memberName(node: ESTree.MemberExpression): string {
  if (node.object.type !== "Identifier") return "";
  if (node.property.type === "Identifier") return `${node.object.name}.${node.property.name}`;
  return node.property.type === "Literal" ? `${node.object.name}.${node.property.value}` : "";
}

/**
 * Time, randomness, environment and console come in from outside. Only the kernel of core and the command line may use
 * the ambient ones.
 */
export const ambientAccess: Rule = (file) => {
  if (/^packages\/(core\/src\/kernel|cli|house)\//.test(file.path)) return [];
  const problems: string[] = [];
  const report = (node: { readonly start: number }, what: string) =>
    problems.push(`${place(file, node)} uses ${what}`);
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

const collections = new Set(["Map", "Set", "WeakMap", "WeakSet"]);

/** An empty collection at module level can only be meant to be filled later. */
function startsEmpty(value: ESTree.Expression | null): boolean {
  if (value?.type !== "NewExpression" || value.callee.type !== "Identifier") return false;
  return collections.has(value.callee.name) && value.arguments.length === 0;
}

/** No module has state: no `let` and no collection that starts empty. */
export const moduleState: Rule = (file) =>
  file.program.body.flatMap((statement) => {
    const declared =
      statement.type === "ExportNamedDeclaration" ? statement.declaration : statement;
    if (declared?.type !== "VariableDeclaration") return [];
    const mutable =
      declared.kind !== "const" || declared.declarations.some(({ init }) => startsEmpty(init));
    return mutable ? [`${place(file, statement)} keeps module state`] : [];
  });

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

const runners = new Set(["it", "test", "describe"]);
const escapes = new Set(["skip", "only", "todo", "skipIf", "runIf", "fails"]);

/** No test is skipped, run alone or left to do. */
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

/**
 * Every regular expression takes linear time, because the text may come from a caller. Expressions are literals: a rule
 * cannot check one that is built at run time.
 */
export const slowExpressions: Rule = (file) => {
  const problems: string[] = [];
  const report = (node: { readonly start: number }, what: string) =>
    problems.push(`${place(file, node)} ${what}`);
  const reportMade = (node: ESTree.NewExpression | ESTree.CallExpression): void => {
    if (node.callee.type === "Identifier" && node.callee.name === "RegExp")
      report(node, "builds a regular expression at run time");
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
