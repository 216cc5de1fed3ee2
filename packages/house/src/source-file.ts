import { readFileSync } from "node:fs";
import { type ESTree, type ParseResult, parseSync, Visitor, type VisitorObject } from "vite";

/** One parsed TypeScript file. Paths are from the root of the repository, with forward slashes. */
export interface SourceFile {
  readonly path: string;
  readonly text: string;
  readonly program: ESTree.Program;
  readonly comments: ParseResult["comments"];
  /** Every specifier that it imports or re-exports from, including types, `import()` and `import("…")` types. */
  readonly imports: readonly string[];
}

/** A rule reads one file and returns its problems as `path:line problem`. */
export type Rule = (file: SourceFile) => readonly string[];

/** Visits every node of a file. */
export const visit = ({ program }: Pick<SourceFile, "program">, visitor: VisitorObject): void =>
  new Visitor(visitor).visit(program);

function importsOf(program: ESTree.Program): readonly string[] {
  const found: string[] = [];
  const add = (source: ESTree.Expression | null) => {
    if (source?.type === "Literal" && typeof source.value === "string") found.push(source.value);
  };
  visit(
    { program },
    {
      ImportDeclaration: (node) => add(node.source),
      ExportNamedDeclaration: (node) => add(node.source),
      ExportAllDeclaration: (node) => add(node.source),
      ImportExpression: (node) => add(node.source),
      TSImportType: (node) => add(node.source),
    },
  );
  return found;
}

/** Parses one file. @throws Error naming the file if it does not parse. */
export function parseSource(path: string, text: string): SourceFile {
  const { program, comments, errors } = parseSync(path, text);
  const [error] = errors;
  if (error !== undefined) throw new Error(`${path} does not parse: ${error.message}`);
  return { path, text, program, comments, imports: importsOf(program) };
}

export const readSource = (root: string, path: string): SourceFile =>
  parseSource(path, readFileSync(`${root}/${path}`, "utf8"));

/** The location of a node: `packages/core/src/gateway.ts:12`. */
export const place = (file: SourceFile, node: { readonly start: number }): string =>
  `${file.path}:${file.text.slice(0, node.start).split("\n").length}`;

/** Whether a file imports a function of this name from this module and calls it. */
export function callsImported(file: SourceFile, name: string, from: RegExp): boolean {
  const imported = file.program.body.some(
    (statement) =>
      statement.type === "ImportDeclaration" &&
      from.test(statement.source.value) &&
      statement.specifiers.some((specifier) => specifier.local.name === name),
  );
  let called = false;
  visit(file, {
    CallExpression(node) {
      if (node.callee.type === "Identifier" && node.callee.name === name) called = true;
    },
  });
  return imported && called;
}

/** The members of an interface, by name. @throws Error if the file declares no such interface. */
export function interfaceMembers(file: SourceFile, name: string): readonly string[] {
  const found: string[] = [];
  visit(file, {
    TSInterfaceDeclaration: ({ id, body }) => {
      if (id.name !== name) return;
      for (const member of body.body)
        if (member.type === "TSPropertySignature" && member.key.type === "Identifier")
          found.push(member.key.name);
    },
  });
  if (found.length === 0) throw new Error(`${file.path} declares no members of ${name}`);
  return found;
}
