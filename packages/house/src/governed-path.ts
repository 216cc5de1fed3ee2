import type { ESTree } from "vite";
import { callsImported, place, type Rule, type SourceFile, visit } from "./source-file.ts";

/** Whether a file answers requests through `answerGoverned`, the one function that calls `execute`. */
export const answersGoverned = (file: SourceFile): boolean =>
  callsImported(file, "answerGoverned", /\/endpoint\.ts$/);

/** Whether a file calls `execute`, which every governed call goes through. */
export const callsExecute = (file: SourceFile): boolean =>
  callsImported(file, "execute", /\/pipeline\/[a-z-]+\.ts$/);

/** Members that govern a call: the verbs of the store, and the methods that ask a provider. */
const governing = new Set([
  "openStep",
  "openAttempt",
  "settleStep",
  "recordRefusal",
  "lapsedSteps",
  "renewLease",
  "complete",
  "embed",
]);

const nameOf = (key: ESTree.Node): string => {
  if (key.type === "Identifier") return key.name;
  return key.type === "Literal" ? String(key.value) : "";
};

/** Only the pipeline asks providers and changes the records of a call: no other file uses these members. */
export const governedByPipeline: Rule = (file) => {
  if (file.path.startsWith("packages/core/src/pipeline/")) return [];
  const problems: string[] = [];
  const report = (node: ESTree.Node, name: string) => {
    if (governing.has(name))
      problems.push(`${place(file, node)} uses ${name} outside the pipeline`);
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

/** An endpoint uses the store only for stored responses, and never passes the store on. */
export const storeOfEndpoints: Rule = (file) => {
  if (!file.path.startsWith("packages/core/src/endpoints/")) return [];
  const allowed = new Set<ESTree.Node>();
  const problems: string[] = [];
  const report = (node: ESTree.Node) =>
    problems.push(`${place(file, node)} uses the store outside the pipeline`);
  visit(file, {
    MemberExpression(node) {
      // A member is visited before its object.
      if (nameOf(node.property) === "responses") allowed.add(node.object);
      // The `store` of a call is the boolean parameter of the request.
      const isStore = nameOf(node.property) === "store" && nameOf(node.object) !== "call";
      if (isStore && !allowed.has(node)) report(node);
    },
    ObjectPattern(node) {
      for (const property of node.properties)
        if (property.type === "Property" && nameOf(property.key) === "store") report(property);
    },
  });
  return problems;
};
