import {
  decodeCursor,
  encodeCursor,
  GatewayError,
  type StorePage,
  type StorePaging,
} from "@tollgate/core/store";
import type { SqlDialect } from "./dialect.ts";
import { readRow } from "./rows/row-reader.ts";
import type { SqlParameters } from "./statement.ts";

/** A condition of constant text and the parameters it names. */
export interface Condition {
  readonly text: string;
  readonly parameters: SqlParameters;
}

/** A list in one fixed order, read page by page after the last row seen. */
export interface PagedList {
  /** The list's name in its cursors. */
  readonly name: string;
  readonly table: string;
  /** Whether its rows belong to organizations, so a page can be read from each organization. */
  readonly byOrganization: boolean;
  readonly columns: readonly string[];
  /** The column it is sorted by, an integer. */
  readonly order: string;
  readonly direction: "ASC" | "DESC";
  /** The column that orders rows with equal values of the first; null if those are unique. */
  readonly tie: {
    readonly column: string;
    readonly direction: "ASC" | "DESC";
    readonly type: "integer" | "text";
  } | null;
}

/** The statement that reads a page, and its parameters. */
export interface PageStatement {
  readonly text: string;
  readonly parameters: SqlParameters;
}

/** Asks for one row more than the page holds, to learn whether another page follows. */
export function selectPage(
  list: PagedList,
  conditions: readonly Condition[],
  paging: StorePaging,
  dialect: SqlDialect,
): PageStatement {
  const all = paging.cursor === null ? conditions : [...conditions, behind(list, paging.cursor)];
  const parameters: SqlParameters = Object.assign(
    { page_limit: paging.limit + 1 },
    ...all.map((one) => one.parameters),
  );
  const texts = all.map(({ text }) => text);
  const isOfOne = !list.byOrganization || Object.hasOwn(parameters, "organization_id");
  return { text: isOfOne ? pageOfOne(list, texts) : pageOfAll(list, texts, dialect), parameters };
}

function pageOfOne(list: PagedList, conditions: readonly string[]): string {
  return `SELECT ${columnsOf(list).join(", ")} FROM ${list.table} ${within(list, conditions)}`;
}

/**
 * Every index begins with the organization, so each organization is read separately. The first query finds each
 * organization's first row. Only the organizations whose first rows sort first, at most as many as the page has rows,
 * can have a row on the page, so pages are read from those alone.
 */
function pageOfAll(list: PagedList, conditions: readonly string[], dialect: SqlDialect): string {
  const rowsOf = (limit?: string): string =>
    dialect.joinPage(list.table, within(list, ["organization_id = o.id", ...conditions], limit));
  const leading = `SELECT o.id FROM organizations o ${rowsOf("1")} ${ordered(list, "r.")}`;
  const columns = columnsOf(list).map((column) => `r.${column}`);
  return `SELECT ${columns.join(", ")} FROM (${leading}) AS o ${rowsOf()} ${ordered(list, "r.")}`;
}

function columnsOf({ columns, order, tie }: PagedList): readonly string[] {
  return [...new Set([...columns, order, ...(tie ? [tie.column] : [])])];
}

function within(list: PagedList, conditions: readonly string[], limit = ":page_limit"): string {
  const where = conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`;
  return `${where} ${ordered(list, "", limit)}`;
}

function ordered({ order, direction, tie }: PagedList, of: string, limit = ":page_limit"): string {
  const ties = tie ? `, ${of}${tie.column} ${tie.direction}` : "";
  return `ORDER BY ${of}${order} ${direction}${ties} LIMIT ${limit}`;
}

function behind(list: PagedList, cursor: string): Condition {
  const place = decodeCursor(list.name, cursor);
  const { order, tie } = list;
  const beyond = list.direction === "ASC" ? ">" : "<";
  if (!tie)
    return { text: `${order} ${beyond} :page_order`, parameters: { page_order: place.order } };
  const tied = tie.type === "text" ? place.tie : tieNumber(place.tie);
  // This comparison alone lets the index start at the cursor's position.
  return {
    text: `${order} ${beyond}= :page_order AND (${order} ${beyond} :page_order
      OR ${tie.column} ${tie.direction === "ASC" ? ">" : "<"} :page_tie)`,
    parameters: { page_order: place.order, page_tie: tied },
  };
}

function tieNumber(tie: string): number {
  const number = Number(tie);
  if (Number.isSafeInteger(number) && String(number) === tie) return number;
  throw new GatewayError("invalid_argument", "`cursor` must be the `nextCursor` of this list.", {
    param: "cursor",
  });
}

/** Builds the page from the statement's rows. */
export function pageOf<Record>(
  list: PagedList,
  rows: readonly unknown[],
  limit: number,
  fromRow: (row: unknown) => Record,
): StorePage<Record> {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  const nextCursor = last === undefined || rows.length <= limit ? null : cursorAt(list, last);
  return { data: shown.map(fromRow), nextCursor };
}

/** The cursor behind a row. */
export function cursorAt({ name, order, tie }: PagedList, row: unknown): string {
  const read = readRow(row);
  const tied = tie && (tie.type === "text" ? read.text(tie.column) : read.integer(tie.column));
  return encodeCursor(name, { order: read.integer(order), tie: String(tied ?? "") });
}
