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

/** Formats a record as lines of name and value. */
export function formatRecord(record: object): string {
  const entries = Object.entries(record);
  const width = Math.max(0, ...entries.map(([name]) => name.length));
  return entries.map(([name, value]) => `${name.padEnd(width)}  ${printable(value)}`).join("\n");
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
