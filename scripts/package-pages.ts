// Writes the generated pages: the API reference from the docstrings of the packages, the README and LICENSE that each
// one publishes, and llms.txt. Run it with `npm run docs:api`; a test checks that they are current.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname } from "node:path";
import { openApiDocument, routes } from "../packages/admin/src/open-api.ts";
import { apiPage } from "../packages/house/src/api-page.ts";
import { readSource, type SourceFile } from "../packages/house/src/source-file.ts";
import { packageSnippets } from "./package-snippets.ts";
import { publishedPackages, type Workspace } from "./workspaces.ts";

type Read = (path: string) => SourceFile;

function peers({ manifest }: Workspace): string {
  const all = Object.entries(manifest.peerDependencies ?? {});
  if (all.length === 0) return "";
  return `Peer dependencies, needed only by the parts that use them: ${all.map(([name, range]) => `\`${name}\` ${range}`).join(", ")}.\n\n`;
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

${program(at)}${peers(at)}Import it from ${entryPoints.join(", ")}. It ships ES modules with types, and every export has a docstring.
It requires Node \`${engines?.["node"]}\`. MIT license.
`;
}

/** The index of the documentation for language models: the tables of docs/README.md as lists (llmstxt.org). */
function llmsText(root: string): string {
  const summary = /^\*\*(.+)\*\*$/m.exec(readFileSync(`${root}/README.md`, "utf8"))?.[1] ?? "";
  const lines = readFileSync(`${root}/docs/README.md`, "utf8").split("\n");
  let purpose = "";
  const items = lines.flatMap((line, index): readonly string[] => {
    if (line === "## Decisions") return ["", "## Optional", ""];
    if (line.startsWith("## ")) return ["", line, ""];
    if (line.startsWith("Exports of each package"))
      return publishedPackages(root).map(
        ({ directory, manifest }) =>
          `- [${manifest.name}](docs/reference/api/${basename(directory)}.md): ${manifest.description}`,
      );
    const [, decision, decisionPath] = /^\d+\. \[(.+)\]\((.+)\)/.exec(line) ?? [];
    if (decision !== undefined) return [`- [${decision}](docs/${decisionPath})`];
    const [, first = "", second = ""] = /^\| (.+?) \| (.+?) \|$/.exec(line) ?? [];
    if (lines[index + 1]?.startsWith("|-")) purpose = first.startsWith("to ") ? `${first} ` : "";
    const [link, text] = first.startsWith("[") ? [first, second] : [second, purpose + first];
    const [, title, path] = /^\[(.+)\]\((.+)\)$/.exec(link) ?? [];
    if (title === undefined) return [];
    return [`- [${title}](docs/${path})${text === title ? "" : `: ${text}`}`];
  });
  return `# Tollgate

> ${summary}

## Start

- [README](README.md): an overview, figures and the packages
${items.join("\n").trim()}
`;
}

/** The operations of the admin API, as tables by the first part of their path. */
function adminPage(): string {
  const rows = new Map<string, string[]>();
  for (const [name, { method, path, role, platform, audited, summary }] of routes()) {
    const noun = path.split("/")[1] ?? "";
    const who = platform ? `${role} for all organizations` : role;
    const row = `| \`${method} ${path}\` | \`${name}\` | ${who} | ${audited ? "yes" : "no"} | ${summary} |`;
    rows.set(noun, [...(rows.get(noun) ?? []), row]);
  }
  const tables = [...rows].map(
    ([noun, lines]) =>
      `## ${noun}\n\n| operation | name | role | recorded | answer |\n|---|---|---|---|---|\n${lines.join("\n")}\n`,
  );
  return `# Admin API

The operations of \`@tollgate/admin\`, below \`/admin/v1\`. [Administer over HTTP](../guides/administration.md) describes
sign-in, roles, parameters and pages; [admin-openapi.json](admin-openapi.json) is the OpenAPI 3.1 document. A recorded
operation also stores who performed it. The OpenAPI document says which operations take an \`If-Match\` or an
\`Idempotency-Key\`.

${tables.join("\n")}`;
}

/** The text of each generated page, by its path from the root. */
export function packagePages(root: string): ReadonlyMap<string, string> {
  const read: Read = (path) => readSource(root, path);
  const license = readFileSync(`${root}/LICENSE`, "utf8");
  const ofPackages = publishedPackages(root).flatMap((at): readonly [string, string][] => [
    [`docs/reference/api/${basename(at.directory)}.md`, apiPage(at, read)],
    [`${at.directory}/README.md`, readme(at)],
    [`${at.directory}/LICENSE`, license],
  ]);
  return new Map([
    ...ofPackages,
    ["docs/reference/admin-api.md", adminPage()],
    ["docs/reference/admin-openapi.json", `${JSON.stringify(openApiDocument(), null, 1)}\n`],
    ["llms.txt", llmsText(root)],
  ]);
}

if (import.meta.main) {
  for (const [path, text] of packagePages(".")) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
}
