import type { ESTree } from "vite";
import { callsImported } from "./calls.ts";
import { place, type Rule, type SourceFile, visit } from "./source-file.ts";

/** What governs a call: the store's atomic verbs, and the one method of a provider. */
const governing = new Set([
  "openStep",
  "openAttempt",
  "settleStep",
  "recordRefusal",
  "lapsedSteps",
  "renewLease",
  "complete",
]);

/** What an endpoint may read of the line's store: stored responses, which no governed call writes by itself. */
const readable = new Set(["responses"]);

const nameOf = (key: ESTree.Node): string => {
  if (key.type === "Identifier") return key.name;
  return key.type === "Literal" ? String(key.value) : "";
};

const isEndpoint = (file: SourceFile): boolean =>
  file.path.startsWith("packages/core/src/endpoints/");

/** Only the pipeline asks a provider and changes what the store keeps of a call: no member of that name elsewhere. */
export const governedOnTheLine: Rule = (file) => {
  if (file.path.startsWith("packages/core/src/pipeline/")) return [];
  const problems: string[] = [];
  const report = (node: ESTree.Node, name: string) => {
    if (governing.has(name)) problems.push(`${place(file, node)} reaches ${name} past the line`);
  };
  visit(file, {
    MemberExpression: (node) => report(node, nameOf(node.property)),
    ObjectPattern(node) {
      for (const property of node.properties)
        if (property.type === "Property") report(property, nameOf(property.key));
    },
  });
  return problems;
};

/** An endpoint goes to the store only for stored responses, and hands its store to nobody. */
export const storeOfEndpoints: Rule = (file) => {
  if (!isEndpoint(file)) return [];
  const allowed = new Set<ESTree.Node>();
  const problems: string[] = [];
  const report = (node: ESTree.Node) =>
    problems.push(`${place(file, node)} reaches the store past the line`);
  visit(file, {
    MemberExpression(node) {
      if (readable.has(nameOf(node.property))) allowed.add(node.object);
      if (nameOf(node.property) === "store" && isLine(node.object) && !allowed.has(node))
        report(node);
    },
    ObjectPattern(node) {
      for (const property of node.properties)
        if (property.type === "Property" && nameOf(property.key) === "store") report(property);
    },
  });
  return problems;
};

/** `line`, or something's `line`: a request has a `store` of its own. */
const isLine = (node: ESTree.Node): boolean =>
  nameOf(node) === "line" || (node.type === "MemberExpression" && nameOf(node.property) === "line");

/** Whether a file answers requests by way of the one function that calls the line. */
export const answersGoverned = (file: SourceFile): boolean =>
  callsImported(file, "answerGoverned", /\/endpoint\.ts$/);

/** Whether a file calls the one function that every governed call goes through. */
export const callsTheLine = (file: SourceFile): boolean =>
  callsImported(file, "execute", /\/pipeline\/execute\.ts$/);
