import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { API } from "typescript/unstable/async";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { type Snippet, snippets } from "../src/markdown.ts";
import { moduleProcess } from "../src/module-process.ts";
import { type PageFolder, pageFolder, type RunningGateway } from "../src/page-folder.ts";
import { repositoryRoot } from "../src/repository.ts";

const folder = mkdtempSync(`${repositoryRoot}/.snippets-`);
const modules = moduleProcess();
afterAll(async () => {
  await modules.stop();
  rmSync(folder, { recursive: true, force: true });
});

const read = (path: string): string => readFileSync(`${repositoryRoot}/${path}`, "utf8");

interface Page {
  readonly path: string;
  readonly snippets: readonly Snippet[];
  readonly folder: PageFolder;
}

const paths = globSync(["README.md", "packages/*/README.md", "docs/**/*.md"], {
  cwd: repositoryRoot,
}).sort();

const pages: readonly Page[] = paths
  .map((path) => ({
    path,
    snippets: snippets(read(path)),
    folder: pageFolder(repositoryRoot, `${folder}/${path.replace(/\W+/g, "-")}`, modules),
  }))
  .filter((page) => page.snippets.length > 0);

const ofLanguage = (page: Page, language: Snippet["language"]) =>
  page.snippets.filter((snippet) => snippet.language === language);

/** Errors in the snippets. The packages that they import have their own type check. */
async function compile(directory: string): Promise<readonly string[]> {
  const configuration = `${directory}/tsconfig.json`;
  const settings = {
    extends: "../tsconfig.json",
    compilerOptions: { noEmit: true, moduleDetection: "force", rootDir: "../" },
    include: ["**/*.ts"],
  };
  writeFileSync(configuration, JSON.stringify(settings));
  const api = new API({ cwd: directory });
  try {
    const snapshot = await api.updateSnapshot({ openProjects: [configuration] });
    const program = snapshot.getProject(configuration)?.program;
    if (program === undefined) throw new Error("TypeScript did not read tsconfig.json");
    const files = globSync("**/*.ts", { cwd: directory }).map((path) => `${directory}/${path}`);
    const found = [
      await program.getConfigFileParsingDiagnostics(),
      ...(await Promise.all(files.map((file) => program.getSyntacticDiagnostics(file)))),
      ...(await Promise.all(files.map((file) => program.getSemanticDiagnostics(file)))),
    ];
    return found.flat().map(({ fileName = "", code, text }) => `${fileName}: TS${code}: ${text}`);
  } finally {
    await api.close();
  }
}

describe("the documentation", () => {
  it("has snippets in the README and the quickstart", () => {
    expect(pages.map(({ path }) => path)).toEqual(
      expect.arrayContaining(["README.md", "docs/quickstart.md"]),
    );
  });

  it("shows the commands behind npm start and npm run tollgate", () => {
    const manifest: unknown = JSON.parse(readFileSync(`${repositoryRoot}/package.json`, "utf8"));
    const tollgate = "node --conditions=tollgate-source packages/cli/bin/tollgate.js";
    expect(manifest).toMatchObject({ scripts: { start: `exec ${tollgate} serve`, tollgate } });
  });

  it("shows settings of clients and of the gateway that can be read", () => {
    const languages = new Set<string>();
    for (const path of paths)
      for (const { language, code, line } of snippets(read(path), ["json", "yaml"])) {
        languages.add(language);
        const values: unknown = language === "json" ? JSON.parse(code) : parse(code);
        expect(values, `${path}:${line}`).toEqual(expect.any(Object));
      }
    expect([...languages]).toEqual(expect.arrayContaining(["json", "yaml"]));
  });

  it("compiles", { timeout: 60_000 }, async () => {
    for (const page of pages) {
      for (const snippet of ofLanguage(page, "ts")) page.folder.write(snippet);
    }
    expect(await compile(folder)).toEqual([]);
  });
});

/** The readers of these pages have a database from the quickstart. */
const migrating: Snippet = {
  language: "sh",
  file: null,
  code: "npm run -s tollgate -- migrate",
  line: 0,
  prints: null,
};

describe.each(pages)("$path", (page) => {
  let gateway: RunningGateway | null = null;

  beforeAll(async () => {
    for (const snippet of ofLanguage(page, "ts")) page.folder.write(snippet);
    const commands = ofLanguage(page, "sh").map(({ code }) => code);
    const starts = commands.some((code) => /\bnpm start\b/.test(code));
    const isConfigured = page.snippets.some(({ file }) => file?.startsWith("tollgate.config"));
    const reads = !isConfigured && commands.some((code) => code.includes("npm run -s tollgate"));
    if (starts) gateway = await page.folder.start();
    else if (reads) page.folder.runShell(migrating, null);
  }, 30_000);
  afterAll(() => gateway?.stop());

  it.each(page.snippets)("runs as written, line $line", { timeout: 60_000 }, async (snippet) => {
    const printed =
      snippet.language === "ts"
        ? await page.folder.runTypeScript(snippet)
        : page.folder.runShell(snippet, gateway);
    if (snippet.prints !== null) expect(printed.trim()).toBe(snippet.prints.trim());
  });
});

describe("the snippet runner", () => {
  const block = (info: string, code: string) => `\`\`\`${info}\n${code}\n\`\`\`\n`;

  it("finds ts and sh blocks, or other languages on request, with their line, file and output", () => {
    const page = `# Page\n${block("ts a.ts", "x")}\n${block("text", "7")}${block("json", "{}")}${block("sh", "ls")}`;
    expect(snippets(page)).toEqual([
      { language: "ts", file: "a.ts", code: "x", line: 2, prints: "7" },
      { language: "sh", file: null, code: "ls", line: 12, prints: null },
    ]);
    const other = `${page}${block("js b.js", "y")}`;
    expect(snippets(other)).toHaveLength(2);
    expect(snippets(other, ["js"])).toMatchObject([{ language: "js", file: "b.js", code: "y" }]);
    expect(() => snippets("```ts\nx")).toThrow("line 1");
  });

  it("fails for code that does not compile, throws, or runs another npm command", async () => {
    const scratch = mkdtempSync(`${repositoryRoot}/.snippets-`);
    try {
      const page = pageFolder(repositoryRoot, `${scratch}/page`, modules);
      const [wrong, throwing] = snippets(
        block("ts", 'const x: number = "a"') + block("ts", 'throw new Error("no")'),
      ) as [Snippet, Snippet];
      page.write(wrong);
      page.write(throwing);
      expect(await compile(scratch)).toEqual([expect.stringContaining("TS2322")]);
      await expect(page.runTypeScript(throwing)).rejects.toThrow("Error: no");
      const [publish] = snippets(block("sh", "npm publish")) as [Snippet];
      expect(() => page.runShell(publish, null)).toThrow("may not run: npm publish");
    } finally {
      rmSync(scratch, { recursive: true, force: true });
    }
  }, 30_000);

  it("fails for code that throws or exits later, or waits forever, and then runs the next", async () => {
    const scratch = mkdtempSync(`${repositoryRoot}/.snippets-`);
    const run = (name: string, code: string) => {
      writeFileSync(`${scratch}/${name}.mjs`, code);
      return modules.run(`${scratch}/${name}.mjs`);
    };
    try {
      await expect(run("a", "setTimeout(() => { throw Error('late') })")).rejects.toThrow("late");
      await expect(run("b", "process.exitCode = 3")).rejects.toThrow("ended with 3");
      await expect(run("c", "await new Promise(() => {})")).rejects.toThrow("never happens");
      const late = "console.log(1); setTimeout(() => console.log(process.cwd()), 10)";
      expect(await run("d", late)).toBe(`1\n${scratch}\n`);
    } finally {
      rmSync(scratch, { recursive: true, force: true });
    }
  }, 30_000);
});
