/** One column of a table: its heading and its value in a row. */
export interface Column<Row> {
  readonly heading: string;
  readonly of: (row: Row) => string | number | null;
  /** Whether to align to the right, for numbers. */
  readonly right?: true;
}

/** Formats rows as a table with columns as wide as their widest cell. Absent values are a dash. */
export function formatTable<Row>(rows: readonly Row[], columns: readonly Column<Row>[]): string {
  const cells = rows.map((row) => columns.map((column) => printable(column.of(row))));
  const lines = [columns.map((column) => column.heading.toUpperCase()), ...cells];
  const widths = columns.map((_, at) =>
    lines.reduce((widest, line) => Math.max(widest, widthOf(line[at] ?? "")), 0),
  );
  return lines
    .map((line) =>
      line
        .map((cell, at) => {
          const blank = " ".repeat((widths[at] ?? 0) - widthOf(cell));
          return columns[at]?.right ? blank + cell : cell + blank;
        })
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

/** East Asian characters and emoji, which a terminal shows twice as wide as others. */
const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\uff01-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}\p{Emoji_Presentation}]/u;

/** The columns of a terminal that a text takes. A combining mark takes none. */
function widthOf(text: string): number {
  let width = 0;
  for (const character of text.replace(/\p{M}/gu, "")) width += wide.test(character) ? 2 : 1;
  return width;
}

/** Formats a record as lines of name and value. The records in its lists follow, such as the attempts of a Step. */
export function formatRecord(record: object): string {
  const entries = Object.entries(record);
  const lines = linesOf(entries.filter(([, value]) => !isRecords(value)));
  const blocks = entries.flatMap(([name, value]) =>
    isRecords(value)
      ? value.map((one, at) => [`${name} ${at + 1}`, ...indented(Object.entries(one))])
      : [],
  );
  return [lines, ...blocks].map((block) => block.join("\n")).join("\n\n");
}

type Entries = readonly (readonly [name: string, value: unknown])[];

function linesOf(entries: Entries): readonly string[] {
  const width = Math.max(0, ...entries.map(([name]) => name.length));
  return entries.map(([name, value]) => `${name.padEnd(width)}  ${printable(value)}`);
}

function indented(entries: Entries): readonly string[] {
  return linesOf(entries).map((line) => `  ${line}`);
}

function isRecords(value: unknown): value is readonly object[] {
  const isRecord = (one: unknown): boolean =>
    typeof one === "object" && one !== null && !Array.isArray(one);
  return Array.isArray(value) && value.length > 0 && value.every(isRecord);
}

/** Formats a value. An absent one is a dash. */
export function printable(value: unknown): string {
  if (value === null || value === undefined || value === "") return "-";
  return escaped(typeof value === "object" ? JSON.stringify(value) : String(value));
}

/** Escapes control characters, because callers' text must not control the terminal. */
export function escaped(text: string): string {
  return text.replace(/\p{C}/gu, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return `\\u{${code.toString(16)}}`;
  });
}
