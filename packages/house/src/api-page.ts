import type { ESTree } from "vite";
import type { Workspace } from "../../../scripts/workspaces.ts";
import { type Documented, exportedNames, isType } from "./exported-names.ts";
import { type SourceFile, visit } from "./source-file.ts";

type Read = (path: string) => SourceFile;

/** An entry point of a package with the names that it exports from that package, functions before types. */
interface EntryPoint {
  /** How an import names it: `@tollgate/core/policy`. */
  readonly specifier: string;
  readonly symbols: readonly Documented[];
}

/** The entry points of a package, in the order of its package.json. */
function entryPointsOf({ directory, manifest }: Workspace, read: Read): readonly EntryPoint[] {
  return Object.entries(manifest.exports ?? {}).flatMap(([subpath, entry]) => {
    const source = typeof entry === "string" ? undefined : entry["tollgate-source"];
    if (source === undefined) return [];
    const symbols = exportedNames(read(`${directory}/${source.replace(/^\.\//, "")}`), read);
    return {
      specifier: manifest.name + subpath.slice(1),
      symbols: symbols.toSorted(
        (a, b) => Number(isType(a)) - Number(isType(b)) || (a.name < b.name ? -1 : 1),
      ),
    };
  });
}

/** A docstring as Markdown, with each tag in a separate paragraph. */
const prose = (documentation: string): string =>
  documentation
    .replace(/(^|\s)@throws\s+(\w+)/g, "\n\nThrows `$2`:")
    .replace(/(^|\s)@returns?\s+/g, "\n\nReturns ")
    .replace(/(^|\s)@param\s+(\w+)/g, "\n\n`$2`:")
    .trim();

// Not fenced as `ts`, because the docs test would try to run it.
const section = (symbol: Documented): string =>
  `### ${symbol.name}\n\n${prose(symbol.documentation)}\n\n\`\`\`typescript\n${signature(symbol)}\n\`\`\`\n`;

/** Renders the reference page of one package from its docstrings. */
export function apiPage(at: Workspace, read: Read): string {
  const sections = entryPointsOf(at, read).map(({ specifier, symbols }) =>
    [`## From \`${specifier}\`\n`, ...symbols.map(section)].join("\n"),
  );
  const introduction = `# ${at.manifest.name}\n\n${at.manifest.description}. Written by \`npm run docs:api\` from the docstrings.\n`;
  return [introduction, ...sections].join("\n");
}

/** The page leaves out longer initial values: they are implementation. */
const maxValueLength = 120;

interface Cut {
  readonly from: number;
  readonly to: number;
  readonly put: string;
}

/** Cuts the value of a constant that has a type annotation or is long, and the body of an arrow function. */
function cutsOfVariable({ id, init }: ESTree.VariableDeclarator): readonly Cut[] {
  if (init === null) return [];
  if (init.type === "ArrowFunctionExpression") {
    return [{ from: init.body.start, to: init.body.end, put: "…" }];
  }
  const typed = id.type === "Identifier" && id.typeAnnotation;
  if (!typed && init.end - init.start <= maxValueLength) return [];
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
  // Skip cuts inside other cuts.
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

/** The signature of a declaration: its types and the docstrings of its members, without bodies. */
export function signature({ statements, file }: Documented): string {
  const all = statements.map((statement) => withoutBodies(file.text, statement));
  // Leave out the implementation of overloads.
  return (all.length > 1 ? all.slice(0, -1) : all).join("\n");
}
