import { existsSync, globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const title = /["`]((?:[^"`\\\n]|\\.)+)["`][,:]/g;
const leading = /^(?:[A-Z]{1,2}\d+[,:]? )+/;
const inParentheses = /\(([A-Z]{1,2}\d+(?:, [A-Z]{1,2}\d+)*)\)/;

const packages = fileURLToPath(new URL("../..", import.meta.url));
const read = (path: string): string => readFileSync(`${packages}/${path}`, "utf8");
const table = coveredRows(read("faults/README.md"));
const tests = globSync("*/{src,test}/**/*.ts", { cwd: packages }).flatMap((file) =>
  namedTests(file, read(file)),
);
/** The rows that have a table. */
const isTabled = (row: string): boolean => /^[SH]\d+$/.test(row) || row === "T1";

describe("the table of attacks", () => {
  it("has a test or a command for each row, once and in order", () => {
    const rows = table.map(({ row }) => row).filter(isTabled);
    const order = (row: string) =>
      ["S", "H", "T"].indexOf(row[0] ?? "") * 100 + Number(row.slice(1));
    expect(rows).toEqual([...new Set(rows)].sort((a, b) => order(a) - order(b)));
    expect(rows.filter((row) => row.startsWith("S"))).toHaveLength(44);
    const own = table.filter(({ row }) => isTabled(row));
    expect(own.filter(({ tests, commands }) => tests.length + commands.length === 0)).toEqual([]);
  });

  it("lists exactly the tests whose titles name the row", () => {
    const listed = table.flatMap(({ row, tests }) =>
      tests.map(({ file, title }) => `${row} ${file}: ${title}`),
    );
    const named = tests.flatMap(({ file, title, rows }) =>
      rows.filter(isTabled).map((row) => `${row} ${file}: ${title}`),
    );
    expect(listed.toSorted()).toEqual(named.toSorted());
  });

  it("lists only commands that exist", () => {
    const commands = table.flatMap((row) => row.commands);
    expect(commands.length).toBeGreaterThan(0);
    for (const name of commands)
      expect(existsSync(`${packages}/faults/src/${name}.ts`), name).toBe(true);
  });
});

describe("a title", () => {
  it("names its rows first or in parentheses", () => {
    const source = 'it("S3 a (S4), b", f);\nit("F19, S28: a", f);\nit("a (T1, S39) b", f); x("S5")';
    expect(namedTests("a.ts", source).map(({ rows }) => rows)).toEqual([
      ["S3", "S4"],
      ["F19", "S28"],
      ["T1", "S39"],
    ]);
  });
});

/** A test whose title names rows of a table. */
interface NamedTest {
  /** Below `packages`: `core/test/attacks.test.ts`. */
  readonly file: string;
  readonly title: string;
  readonly rows: readonly string[];
}

/** The tests of a file whose titles begin with rows (`S3 a key…`, `F19, S28: …`) or end with them (`… (S3, T1)`). */
function namedTests(file: string, source: string): readonly NamedTest[] {
  return [...source.matchAll(title)].flatMap(([, text = ""]) => {
    const names = `${leading.exec(text)?.[0] ?? ""} ${inParentheses.exec(text)?.[1] ?? ""}`;
    const rows = names.match(/[A-Z]{1,2}\d+/g) ?? [];
    return rows.length === 0 ? [] : [{ file, title: text, rows }];
  });
}

/** A row of a table in Markdown: its name, and what covers it. */
interface CoveredRow {
  readonly row: string;
  readonly tests: readonly { readonly file: string; readonly title: string }[];
  /** The names of its commands, without `npm run faults --`. */
  readonly commands: readonly string[];
}

/** The rows of tables with three columns: a name, an attack, and its tests (`file: title`) and commands. */
function coveredRows(markdown: string): readonly CoveredRow[] {
  return [...markdown.matchAll(/^\| ([A-Z]{1,2}\d+) \| [^|]+ \| (.+) \|$/gm)].map(
    ([, row = "", cell = ""]) => ({
      row,
      tests: [...cell.matchAll(/(`+)(\S+\.ts): (.+?)\1(?!`)/g)].map(
        ([, , file = "", name = ""]) => ({ file, title: name.replaceAll("\\|", "|") }),
      ),
      commands: [...cell.matchAll(/`npm run faults -- ([a-z-]+)/g)].map(([, name = ""]) => name),
    }),
  );
}
