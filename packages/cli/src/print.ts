import { type Column, formatRecord, formatTable } from "./table.ts";

/** One page of a list. */
interface Page<Row> {
  readonly data: readonly Row[];
  readonly nextCursor: string | null;
}

/** Prints text, or a JSON document for programs. */
export function print(json: boolean | undefined, document: unknown, text: string): void {
  process.stdout.write(`${json ? JSON.stringify(document, null, 2) : text}\n`);
}

/** Prints one record. `shown` is its text form. */
export function printRecord(json: boolean | undefined, record: object, shown = record): void {
  print(json, record, formatRecord(shown));
}

/** Prints a page as a table, and the option for the next page. */
export function printPage<Row>(
  json: boolean | undefined,
  page: Page<Row>,
  columns: readonly Column<Row>[],
): void {
  const { data, nextCursor } = page;
  // A page may end before its first match, because a filter reads only so many records at once.
  const empty = nextCursor === null ? "no records" : "no matching records so far";
  const table = data.length === 0 ? empty : formatTable(data, columns);
  const more = nextCursor === null ? "" : `\n\nnext page: --cursor ${nextCursor}`;
  print(json, { data, nextCursor }, table + more);
}
