import {
  type CursorPlace,
  decodeCursor,
  encodeCursor,
  type StorePage,
  type StorePaging,
  tieNumber,
} from "@tollgate/core/store";
import type { SqlDialect } from "./dialect.ts";
import { readRow } from "./rows/row-reader.ts";
import type { SqlParameters } from "./statement.ts";

/** A condition of constant text and the parameters it names. */
export interface Condition {
  readonly text: string;
  readonly parameters: SqlParameters;
  /** Whether a page scans the rows that don't meet it, because no index skips them. */
  readonly sifts?: true;
}

/** A list in one fixed order, read page by page after the last row seen. */
export interface PagedList {
  /** The list's name in its cursors. */
  readonly name: string;
  readonly table: string;
  /** Whether its rows belong to organizations, so a page can be read from each organization. */
  readonly byOrganization?: true;
  /** Whether its places count what the whole store has written, so cursors of one organization are sealed. */
  readonly isSealed?: true;
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

/** Rows of a list that one table has. The lists of several sources have one order. */
export interface PageSource {
  readonly list: PagedList;
  readonly conditions: readonly Condition[];
  /** Converts a row of the table to a row of the list. */
  readonly convert?: (row: unknown) => unknown;
}

/** The parts of a dialect that lists of all organizations use. */
export type PageDialect = Pick<SqlDialect, "isOneOf" | "jsonArray" | "joinPage" | "list">;

/** How many rows of a filtered list are tried first for each row of the page. */
export const triedRows = 10;

/** Asks for one row more than the page holds, to learn whether another page follows. */
export function selectPage(
  list: PagedList,
  conditions: readonly Condition[],
  paging: StorePaging,
): PageStatement {
  const { texts, parameters } = placed(list, conditions, paging);
  return {
    text: pageText(list, texts),
    parameters: { ...parameters, page_limit: paging.limit + 1 },
  };
}

/** Finds the place of the last row that a page may scan, whatever conditions the rows meet. */
export function selectEnd(
  list: PagedList,
  conditions: readonly Condition[],
  paging: StorePaging & { readonly maxScanned: number },
): PageStatement {
  const leading = conditions.filter(({ sifts }) => !sifts);
  const { texts, parameters } = placed(list, leading, paging);
  return {
    text: pageText({ ...list, columns: [] }, texts, "1 OFFSET :page_scanned"),
    parameters: { ...parameters, page_scanned: paging.maxScanned - 1 },
  };
}

/** Finds the place of the first row of each organization after one, in the order of their ids; null if it has none. */
export function selectFirst(
  list: PagedList,
  conditions: readonly Condition[],
  asked: StorePaging & { readonly after: string },
  dialect: PageDialect,
): PageStatement {
  const { order, tie, table } = list;
  const { texts, parameters } = placed(list, conditions, asked);
  const place = dialect.jsonArray([order, ...(tie ? [tie.column] : [])]);
  const first = within(list, ["organization_id = o.id", ...texts], "1");
  return {
    text: `SELECT o.id, (SELECT ${place} FROM ${table} ${first}) AS first
      FROM organizations o WHERE o.id > :after ORDER BY o.id LIMIT :page_limit`,
    parameters: { ...parameters, after: asked.after, page_limit: asked.limit },
  };
}

/** Reads the first rows of each of some organizations, in no order. Every index begins with the organization. */
export function selectOfEach(
  list: PagedList,
  conditions: readonly Condition[],
  asked: StorePaging & { readonly organizations: readonly string[] },
  dialect: PageDialect,
): PageStatement {
  const { texts, parameters } = placed(list, conditions, asked);
  const ofEach = within(list, ["organization_id = o.id", ...texts]);
  return {
    text: `SELECT ${columnsOf(list, "r.").join(", ")} FROM organizations o
      ${dialect.joinPage(list.table, ofEach)} WHERE ${dialect.isOneOf("o.id", ":organizations")}`,
    parameters: {
      ...parameters,
      page_limit: asked.limit,
      organizations: dialect.list(asked.organizations),
    },
  };
}

/** The conditions of a page, with that of its cursor. */
function placed(
  list: PagedList,
  conditions: readonly Condition[],
  { cursor }: StorePaging,
): { readonly texts: readonly string[]; readonly parameters: SqlParameters } {
  const all = cursor === null ? conditions : [...conditions, afterCursor(list, cursor)];
  const parameters: SqlParameters = Object.assign({}, ...all.map((one) => one.parameters));
  return { texts: all.map(({ text }) => text), parameters };
}

function pageText(list: PagedList, conditions: readonly string[], limit?: string): string {
  const columns = columnsOf(list).join(", ");
  return `SELECT ${columns} FROM ${list.table} ${within(list, conditions, limit)}`;
}

function columnsOf({ columns, order, tie }: PagedList, of = ""): readonly string[] {
  const names = new Set([...columns, order, ...(tie ? [tie.column] : [])]);
  return [...names].map((column) => `${of}${column}`);
}

function within(list: PagedList, conditions: readonly string[], limit = ":page_limit"): string {
  const where = conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`;
  const { order, direction, tie } = list;
  const ties = tie ? `, ${tie.column} ${tie.direction}` : "";
  return `${where} ORDER BY ${order} ${direction}${ties} LIMIT ${limit}`;
}

function afterCursor(list: PagedList, cursor: string): Condition {
  return onSide(list, decodeCursor(list.name, cursor), "page");
}

/** The condition of the rows up to a place, inclusive. */
export function upTo(list: PagedList, place: CursorPlace): Condition {
  return onSide(list, place, "end");
}

/** The condition of the rows after the cursor of the page, or up to its end. */
function onSide(list: PagedList, place: CursorPlace, of: "page" | "end"): Condition {
  const { order, tie } = list;
  const beyond = (direction: "ASC" | "DESC"): string =>
    (of === "page") === (direction === "ASC") ? ">" : "<";
  const side = beyond(list.direction);
  const inclusive = of === "end" ? "=" : "";
  const parameters = { [`${of}_order`]: place.order };
  if (!tie) return { text: `${order} ${side}${inclusive} :${of}_order`, parameters };
  const tied = tie.type === "text" ? place.tie : tieNumber(place);
  // The first comparison alone lets the index start or end at the place.
  return {
    text: `${order} ${side}= :${of}_order AND (${order} ${side} :${of}_order
      OR ${tie.column} ${beyond(tie.direction)}${inclusive} :${of}_tie)`,
    parameters: { ...parameters, [`${of}_tie`]: tied },
  };
}

/** Builds the page from the statement's rows. `end` is where it stopped if it did not reach the end of the list. */
export function pageOf<Record>(
  list: PagedList,
  rows: readonly unknown[],
  limit: number,
  fromRow: (row: unknown) => Record,
  end: CursorPlace | null = null,
): StorePage<Record> {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  const place = last !== undefined && rows.length > limit ? placeOf(list, last) : end;
  return {
    data: shown.map(fromRow),
    nextCursor: place && encodeCursor(list.name, place),
  };
}

/** The place of a row in the list. */
export function placeOf({ order, tie }: PagedList, row: unknown): CursorPlace {
  const read = readRow(row);
  const tied = tie && (tie.type === "text" ? read.text(tie.column) : read.integer(tie.column));
  return { order: read.integer(order), tie: String(tied ?? "") };
}

/** Compares two places in the order of a list whose ties are numbers. */
export function comparePlaces(
  { direction, tie }: PagedList,
  a: CursorPlace,
  b: CursorPlace,
): number {
  const sign = (of: "ASC" | "DESC" | undefined): number => (of === "DESC" ? -1 : 1);
  return (
    sign(direction) * (a.order - b.order) || sign(tie?.direction) * (Number(a.tie) - Number(b.tie))
  );
}

/** The cursor after a row. */
export function cursorAt(list: PagedList, row: unknown): string {
  return encodeCursor(list.name, placeOf(list, row));
}
