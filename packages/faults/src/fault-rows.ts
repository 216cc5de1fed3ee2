import type { Guard } from "./guard-removal.ts";

/** A test file of this package, by its path in it. */
export interface TestFile {
  readonly path: string;
  readonly source: string;
}

/** Rows that a command shows instead of a test. */
const commands: Readonly<Record<string, string>> = {
  F38: "the command `full-disk`, as F33",
};

const rowCount = 56;

/** Every row of the fault matrix. */
export const rows: readonly string[] = Array.from(
  { length: rowCount },
  (_, index) => `F${index + 1}`,
);

/** Whether a test must name the row. */
export function needsTest(row: string): boolean {
  return !(row in commands);
}

/** The rows that a test's title starts with. */
export function rowsOf(title: string): readonly string[] {
  return /^(?:F\d+ )*/.exec(title)?.[0].trim().split(" ") ?? [];
}

/** The titles in a test file that start with a row. */
export function titlesIn({ source }: TestFile): readonly string[] {
  const titles = source.matchAll(/^(?:it|\]\)| {2}).*?"((?:F\d+ )+[^"]+)"/gm);
  return [...titles].map(([, title = ""]) => title);
}

/** The table of README.md: every row with its tests or its command, and its guards. */
export function tableOfRows(files: readonly TestFile[], guards: readonly Guard[]): string {
  const lines = rows.map((row) => {
    const tests = files
      .filter((file) => titlesIn(file).some((title) => rowsOf(title).includes(row)))
      .map(({ path }) => `\`${path}\``);
    const shown = commands[row] ?? tests.join(", ");
    const held = guards.filter((guard) => guard.row === row).map(({ guard }) => guard);
    return `| ${row} | ${shown} | ${held.length === 0 ? "–" : held.join("; ")} |`;
  });
  return ["| row | test or command | guards |", "| --- | --- | --- |", ...lines].join("\n");
}
