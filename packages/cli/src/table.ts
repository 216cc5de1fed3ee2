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
    lines.reduce((widest, line) => Math.max(widest, (line[at] ?? "").length), 0),
  );
  return lines
    .map((line) =>
      line
        .map((cell, at) =>
          columns[at]?.right ? cell.padStart(widths[at] ?? 0) : cell.padEnd(widths[at] ?? 0),
        )
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
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

/** Formats a value, and escapes control characters, because callers' text must not control the terminal. */
export function printable(value: unknown): string {
  if (value === null || value === undefined || value === "") return "-";
  const text = typeof value === "object" ? JSON.stringify(value) : String(value);
  return text.replace(/\p{C}/gu, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return `\\u{${code.toString(16)}}`;
  });
}
