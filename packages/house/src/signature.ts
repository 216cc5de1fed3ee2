import type { ESTree } from "vite";
import type { Documented } from "./door-documentation.ts";
import { visit } from "./source-file.ts";

/** Longest initial value that is shown; longer ones are how, not what. */
const longestValue = 120;

interface Cut {
  readonly from: number;
  readonly to: number;
  readonly put: string;
}

/** The value of a constant, as far as its reader needs it: none beside a type, no body of a function. */
function cutsOfVariable({ id, init }: ESTree.VariableDeclarator): readonly Cut[] {
  if (init === null) return [];
  if (init.type === "ArrowFunctionExpression") {
    return [{ from: init.body.start, to: init.body.end, put: "…" }];
  }
  const typed = id.type === "Identifier" && id.typeAnnotation;
  if (!typed && init.end - init.start <= longestValue) return [];
  return [{ from: id.end, to: init.end, put: "" }];
}

function cutsOf(statement: ESTree.Node): readonly Cut[] {
  const cuts: Cut[] = [];
  const dropBody = (body: ESTree.Node | null) => {
    if (body !== null) cuts.push({ from: body.start, to: body.end, put: ";" });
  };
  visit(
    { program: { type: "Program", body: [statement] } as ESTree.Program },
    {
      FunctionDeclaration: (node) => dropBody(node.body),
      MethodDefinition: (node) => dropBody(node.value.body),
      VariableDeclarator: (node) => cuts.push(...cutsOfVariable(node)),
    },
  );
  // What lies inside of something cut is gone already.
  return cuts.filter(
    (cut) => !cuts.some((other) => other !== cut && other.from <= cut.from && other.to >= cut.to),
  );
}

function withoutBodies(text: string, statement: ESTree.Node): string {
  const cuts = cutsOf(statement).toSorted((a, b) => b.from - a.from);
  const whole = cuts.reduce(
    (left, { from, to, put }) => left.slice(0, from).replace(/ $/, "") + put + left.slice(to),
    text.slice(0, statement.end),
  );
  return whole
    .slice(statement.start)
    .replace(/^export /, "")
    .replace(/=>…;?$/, "=> …;")
    .trim();
}

/** What a declaration promises: its types and the docstrings of its members, without what it does inside. */
export function signature({ statements, file }: Documented): string {
  const all = statements.map((statement) => withoutBodies(file.text, statement));
  // The implementation of overloads is not part of what they promise.
  return (all.length > 1 ? all.slice(0, -1) : all).join("\n");
}
