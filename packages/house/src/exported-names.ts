import { posix } from "node:path";
import type { ESTree } from "vite";
import type { SourceFile } from "./source-file.ts";

type Read = (path: string) => SourceFile;

/** A declaration in its file: several statements if it has overloads. */
interface Declared {
  /** Without stars, with tags; "" without a docstring. */
  readonly documentation: string;
  readonly file: SourceFile;
  readonly statements: readonly ESTree.Node[];
}

/** A name that an entry point exports, with its declaration. */
export interface Documented extends Declared {
  readonly name: string;
}

/** The JSDoc text that ends right before a node, without stars. */
function documentationBefore(file: SourceFile, node: { readonly start: number }): string {
  const comment = file.comments.findLast(({ end }) => end <= node.start);
  if (comment?.type !== "Block" || !comment.value.startsWith("*")) return "";
  if (file.text.slice(comment.end, node.start).trim() !== "") return "";
  return comment.value.replace(/^\s*\*+ ?/gm, "").trim();
}

function declaredNames(declaration: ESTree.Declaration): readonly string[] {
  if (declaration.type === "VariableDeclaration") {
    return declaration.declarations.flatMap(({ id }) =>
      id.type === "Identifier" ? [id.name] : [],
    );
  }
  return "id" in declaration && declaration.id?.type === "Identifier" ? [declaration.id.name] : [];
}

/** Top-level declarations by name; the first documented one of several overloads wins. */
function declarations(file: SourceFile): ReadonlyMap<string, Declared> {
  const found = new Map<string, Declared>();
  for (const statement of file.program.body) {
    const declaration =
      statement.type === "ExportNamedDeclaration" ? statement.declaration : statement;
    if (declaration === null || !/(Declaration|TSDeclareFunction)$/.test(declaration.type))
      continue;
    for (const name of declaredNames(declaration as ESTree.Declaration)) {
      const before = found.get(name);
      found.set(name, {
        documentation: before?.documentation || documentationBefore(file, statement),
        file,
        statements: [...(before?.statements ?? []), statement],
      });
    }
  }
  return found;
}

const nameOf = (node: ESTree.ModuleExportName): string =>
  node.type === "Literal" ? node.value : node.name;

/** The specifier and the original name of an imported name. */
function importedFrom(file: SourceFile, name: string): readonly [string, string] | undefined {
  for (const statement of file.program.body) {
    if (statement.type !== "ImportDeclaration") continue;
    for (const specifier of statement.specifiers) {
      if (specifier.type !== "ImportSpecifier" || specifier.local.name !== name) continue;
      return [statement.source.value, nameOf(specifier.imported)];
    }
  }
  return undefined;
}

function reexported(file: SourceFile, from: string, read: Read): readonly Documented[] {
  if (!from.startsWith(".")) return []; // Documented in its own package.
  return exportedNames(read(posix.join(posix.dirname(file.path), from)), read);
}

function ofSpecifier(
  file: SourceFile,
  statement: ESTree.ExportNamedDeclaration,
  specifier: ESTree.ExportSpecifier,
  read: Read,
): readonly Documented[] {
  const local = nameOf(specifier.local);
  const name = nameOf(specifier.exported);
  const own = declarations(file).get(local);
  if (statement.source === null && own !== undefined) return [{ name, ...own }];
  const [from, original] =
    statement.source === null
      ? (importedFrom(file, local) ?? ["", ""])
      : [statement.source.value, local];
  return reexported(file, from, read)
    .filter((documented) => documented.name === original)
    .map((documented) => ({ ...documented, name }));
}

/** Whether a name is only a type: an interface or an alias. */
export function isType({ statements: [first] }: Documented): boolean {
  const declaration = first?.type === "ExportNamedDeclaration" ? first.declaration : first;
  return /^TS(Interface|TypeAlias)/.test(declaration?.type ?? "");
}

/** The declarations that a file exports from this package, in source order. */
export function exportedNames(file: SourceFile, read: Read): readonly Documented[] {
  const own = declarations(file);
  return file.program.body.flatMap((statement): readonly Documented[] => {
    if (statement.type === "ExportAllDeclaration") {
      const names = reexported(file, statement.source.value, read);
      return statement.exportKind === "type" ? names.filter(isType) : names;
    }
    if (statement.type === "ExportDefaultDeclaration") {
      const documentation = documentationBefore(file, statement);
      return [{ name: "default", documentation, file, statements: [statement] }];
    }
    if (statement.type !== "ExportNamedDeclaration") return [];
    if (statement.declaration === null) {
      return statement.specifiers.flatMap((one) => ofSpecifier(file, statement, one, read));
    }
    return declaredNames(statement.declaration).flatMap((name) => {
      const declared = own.get(name);
      return declared?.statements[0] === statement ? [{ name, ...declared }] : [];
    });
  });
}

function isSentence(documentation: string): boolean {
  const text = documentation.replace(/(^|\s)@\w[\s\S]*$/, "").trim();
  return text.split(/\s+/).length >= 3 && /[.!?:](\s|$)/.test(text);
}

/** Lists the exported names of an entry point whose declaration has no docstring with a sentence. */
export const undocumented = (entryPoint: SourceFile, read: Read): readonly string[] =>
  exportedNames(entryPoint, read)
    .filter(({ documentation }) => !isSentence(documentation))
    .map(
      ({ name, file }) => `${entryPoint.path} exports ${name} without a docstring (${file.path})`,
    );

/** The names that an entry point exports from this package. */
export const exportNames = (entryPoint: SourceFile, read: Read): readonly string[] =>
  exportedNames(entryPoint, read).map(({ name }) => name);
