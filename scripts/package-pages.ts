// Writes the pages generated from the packages: the API reference from their docstrings, and the README and LICENSE
// that each one publishes. Run it with `npm run docs:api`; a test checks that they are current.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname } from "node:path";
import { apiPage } from "../packages/house/src/api-page.ts";
import { readSource, type SourceFile } from "../packages/house/src/source-file.ts";
import { packageSnippets } from "./package-snippets.ts";
import { publishedPackages, type Workspace } from "./workspaces.ts";

type Read = (path: string) => SourceFile;

function peers({ manifest }: Workspace): string {
  const all = Object.entries(manifest.peerDependencies ?? {});
  if (all.length === 0) return "";
  return `Peer dependencies, for the parts that use them: ${all.map(([name, range]) => `\`${name}\` ${range}`).join(", ")}.\n\n`;
}

function program({ manifest }: Workspace): string {
  const snippet = packageSnippets[manifest.name];
  if (snippet === undefined)
    throw new Error(`scripts/package-snippets.ts has no program for ${manifest.name}. Add one.`);
  const printed = snippet.prints === null ? "" : `\n\`\`\`text\n${snippet.prints}\n\`\`\`\n`;
  return `\`\`\`ts\n${snippet.code.trim()}\n\`\`\`\n${printed}\n`;
}

function readme(at: Workspace): string {
  const { name, description, engines, exports = {} } = at.manifest;
  const entryPoints = Object.keys(exports)
    .filter((subpath) => subpath !== "./package.json")
    .map((subpath) => `\`${name}${subpath.slice(1)}\``);
  return `# ${name}

${description}. Part of Tollgate, the model gateway you embed in your TypeScript app.

\`\`\`
npm install ${name}
\`\`\`

${program(at)}${peers(at)}Import it from ${entryPoints.join(", ")}. It consists of ES modules with types, and every export has a docstring.
It requires Node \`${engines?.["node"]}\`. MIT licence.
`;
}

/** The text of each generated page, by its path from the root. */
export function packagePages(root: string): ReadonlyMap<string, string> {
  const read: Read = (path) => readSource(root, path);
  const license = readFileSync(`${root}/LICENSE`, "utf8");
  return new Map(
    publishedPackages(root).flatMap((at) => [
      [`docs/reference/api/${basename(at.directory)}.md`, apiPage(at, read)],
      [`${at.directory}/README.md`, readme(at)],
      [`${at.directory}/LICENSE`, license],
    ]),
  );
}

if (import.meta.main) {
  for (const [path, text] of packagePages(".")) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
}
