import { posix } from "node:path";
import type { ESTree } from "vite";
import type { SourceFile } from "./source-file.ts";

type Read = (path: string) => SourceFile;

/** A name that a file exports, with the docstring of its declaration ("" when it has none). */
interface Documented {
  readonly name: string;
  readonly path: string;
  readonly documentation: string;
}

/** The JSDoc text that ends right before a node, without stars and tags. */
function documentationBefore(file: SourceFile, node: { readonly start: number }): string {
  const comment = file.comments.findLast(({ end }) => end <= node.start);
  if (comment?.type !== "Block" || !comment.value.startsWith("*")) return "";
  if (file.text.slice(comment.end, node.start).trim() !== "") return "";
  return comment.value
    .replace(/^\s*\*+ ?/gm, "")
    .replace(/(^|\s)@\w[\s\S]*$/, "")
    .trim();
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
function declarations(file: SourceFile): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const statement of file.program.body) {
    const declaration =
      statement.type === "ExportNamedDeclaration" ? statement.declaration : statement;
    if (declaration === null || !/Declaration$/.test(declaration.type)) continue;
    for (const name of declaredNames(declaration as ESTree.Declaration)) {
      found.set(name, found.get(name) || documentationBefore(file, statement));
    }
  }
  return found;
}

const nameOf = (node: ESTree.ModuleExportName): string =>
  node.type === "Literal" ? node.value : node.name;

/** Where an imported name comes from, when that is a file of the same package. */
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
  if (!from.startsWith(".")) return []; // documented in the package it comes from
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
  if (statement.source === null && own !== undefined) {
    return [{ name, path: file.path, documentation: own }];
  }
  const [from, original] =
    statement.source === null
      ? (importedFrom(file, local) ?? ["", ""])
      : [statement.source.value, local];
  return reexported(file, from, read)
    .filter((documented) => documented.name === original)
    .map((documented) => ({ ...documented, name }));
}

function exportedNames(file: SourceFile, read: Read): readonly Documented[] {
  const own = declarations(file);
  return file.program.body.flatMap((statement): readonly Documented[] => {
    if (statement.type === "ExportAllDeclaration") {
      return reexported(file, statement.source.value, read);
    }
    if (statement.type === "ExportDefaultDeclaration") {
      const documentation = documentationBefore(file, statement);
      return [{ name: "default", path: file.path, documentation }];
    }
    if (statement.type !== "ExportNamedDeclaration") return [];
    if (statement.declaration === null) {
      return statement.specifiers.flatMap((one) => ofSpecifier(file, statement, one, read));
    }
    return declaredNames(statement.declaration).map((name) => ({
      name,
      path: file.path,
      documentation: own.get(name) ?? "",
    }));
  });
}

const isSentence = (text: string): boolean =>
  text.split(/\s+/).length >= 3 && /[.!?:](\s|$)/.test(text);

/** The exported names of a door that have no sentence of documentation where they are declared. */
export const undocumented = (door: SourceFile, read: Read): readonly string[] =>
  exportedNames(door, read)
    .filter(({ documentation }) => !isSentence(documentation))
    .map(({ name, path }) => `${door.path} exports ${name} without a docstring (${path})`);

/** Every name that a door exports, from this package. */
export const doorNames = (door: SourceFile, read: Read): readonly string[] =>
  exportedNames(door, read).map(({ name }) => name);
