import type { ESTree } from "vite";
import { place, type Rule, type SourceFile, visit } from "./source-file.ts";

/** Names that have a standard term. To ban another name, add it here. */
const replacedNames: ReadonlyMap<string, string> = new Map([
  ["BudgetBook", "BudgetCache"],
  ["BudgetSheet", "BudgetSnapshot"],
  ["Candidate", "PlannedAttempt"],
  ["Carriage", "BatchTransport"],
  ["CredentialBook", "CredentialCache"],
  ["Crew", "Workers"],
  ["Decided", "RoutedDecision"],
  ["Entrance", "RequestHandlers"],
  ["Inbox", "ChunkQueue"],
  ["Line", "GatewayContext"],
  ["Opening", "a name that says what opens"],
  ["Run", "StepRun"],
  ["Stretch", "PartitionRange or LineageSegment"],
  ["Vault", "CredentialSealer"],
  ["createEntrance", "createRequestHandlers"],
  ["giveBack", "release"],
  ["lender", "pool"],
  ["openCrew", "startWorkers"],
  ["otherWork", "yieldToEventLoop"],
  ["surely", "retryUnknownOutcome"],
]);

/** Names that say nothing about what a function does. They are fine for an option or a field. */
const replacedFunctions: ReadonlyMap<string, string> = new Map([["durable", "orUnavailable"]]);

/** Types and functions that once had several meanings: each is declared at most once. */
const unambiguousNames = new Set([
  "routeOf",
  "refusalOf",
  "Endpoint",
  "Route",
  "Answer",
  "SessionRecord",
  "Connection",
]);

function insteadOf(name: string): string | null {
  const bound = /^(most|longest|least|shortest)[A-Z]/.exec(name)?.[1];
  if (bound !== undefined)
    return bound === "most" || bound === "longest" ? "a name with max" : "a name with min";
  return replacedNames.get(name) ?? null;
}

/** No identifier has a name that a standard term replaces. */
export const replacedName: Rule = (file) => {
  const problems: string[] = [];
  const check = (node: { readonly name: string; readonly start: number }): void => {
    const instead = insteadOf(node.name);
    if (instead !== null) problems.push(`${place(file, node)} ${node.name}: write ${instead}`);
  };
  const checkFunction = (node: ESTree.Node | null): void => {
    if (node?.type !== "Identifier") return;
    const instead = replacedFunctions.get(node.name);
    if (instead !== undefined)
      problems.push(`${place(file, node)} ${node.name}(): write ${instead}()`);
  };
  visit(file, {
    Identifier: check,
    PrivateIdentifier: check,
    CallExpression: ({ callee }) => checkFunction(callee),
    FunctionDeclaration: ({ id }) => checkFunction(id),
  });
  return problems;
};

/** The names of `unambiguousNames` that several of these files declare, each with the places. */
export function ambiguousNames(files: readonly SourceFile[]): readonly string[] {
  const places = new Map<string, string[]>();
  const add = (file: SourceFile, id: { readonly name: string; readonly start: number } | null) => {
    if (id === null || !unambiguousNames.has(id.name)) return;
    places.set(id.name, [...(places.get(id.name) ?? []), place(file, id)]);
  };
  for (const file of files)
    visit(file, {
      TSInterfaceDeclaration: ({ id }) => add(file, id),
      TSTypeAliasDeclaration: ({ id }) => add(file, id),
      FunctionDeclaration: ({ id }) => add(file, id),
      VariableDeclarator: ({ id }) => {
        if (id.type === "Identifier") add(file, id);
      },
    });
  return [...places]
    .filter(([, found]) => found.length > 1)
    .map(([name, found]) => `${name} has several meanings: ${found.join(", ")}`);
}
