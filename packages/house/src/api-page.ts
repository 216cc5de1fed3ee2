import type { Workspace } from "../../../scripts/workspaces.ts";
import { type Documented, exportedNames } from "./door-documentation.ts";
import { signature } from "./signature.ts";
import type { SourceFile } from "./source-file.ts";

type Read = (path: string) => SourceFile;

/** A door of a package with the names it exports from that package, functions before types. */
interface Door {
  /** As it is imported: `@tollgate/core/policy`. */
  readonly specifier: string;
  readonly symbols: readonly Documented[];
}

const isType = ({ statements }: Documented): boolean => {
  const [first] = statements;
  const declaration = first?.type === "ExportNamedDeclaration" ? first.declaration : first;
  return /^TS(Interface|TypeAlias)/.test(declaration?.type ?? "");
};

/** The doors of a package, in the order of its package.json. */
function doorsOf({ directory, manifest }: Workspace, read: Read): readonly Door[] {
  return Object.entries(manifest.exports ?? {}).flatMap(([door, entry]) => {
    const source = typeof entry === "string" ? undefined : entry["tollgate-source"];
    if (source === undefined) return [];
    const symbols = exportedNames(read(`${directory}/${source.replace(/^\.\//, "")}`), read);
    return {
      specifier: manifest.name + door.slice(1),
      symbols: symbols.toSorted(
        (a, b) => Number(isType(a)) - Number(isType(b)) || (a.name < b.name ? -1 : 1),
      ),
    };
  });
}

/** A docstring as Markdown: each tag is a line of its own. */
const prose = (documentation: string): string =>
  documentation
    .replace(/(^|\s)@throws\s+(\w+)/g, "\n\nThrows `$2`:")
    .replace(/(^|\s)@returns?\s+/g, "\n\nReturns ")
    .replace(/(^|\s)@param\s+(\w+)/g, "\n\n`$2`:")
    .trim();

// Not fenced as `ts`: a signature is no program to be run.
const section = (symbol: Documented): string =>
  `### ${symbol.name}\n\n${prose(symbol.documentation)}\n\n\`\`\`typescript\n${signature(symbol)}\n\`\`\`\n`;

/** The reference of one package, from its docstrings. */
export function apiPage(at: Workspace, read: Read): string {
  const doors = doorsOf(at, read).map(({ specifier, symbols }) =>
    [`## From \`${specifier}\`\n`, ...symbols.map(section)].join("\n"),
  );
  const introduction = `# ${at.manifest.name}\n\n${at.manifest.description}. Written by \`npm run docs:api\` from the docstrings.\n`;
  return [introduction, ...doors].join("\n");
}
