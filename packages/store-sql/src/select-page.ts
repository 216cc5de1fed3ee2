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
  /** Whether a page passes over the rows that don't meet it, because no index leads past them. */
  readonly sifts?: true;
}

/** A list in one fixed order, read page by page after the last row seen. */
export interface PagedList {
  /** The list's name in its cursors. */
  readonly name: string;
  readonly table: string;
  /** Whether its rows belong to organizations, so a page can be read from each organization. */
  readonly byOrganization: boolean;
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

/** Asks for one row more than the page holds, to learn whether another page follows. */
export function selectPage(
  list: PagedList,
  conditions: readonly Condition[],
  paging: StorePaging,
  dialect: SqlDialect,
): PageStatement {
  const { texts, parameters } = placed(list, conditions, paging);
  return {
    text: isOfOne(list, parameters) ? pageOfOne(list, texts) : pageOfAll(list, texts, dialect),
    parameters: { ...parameters, page_limit: paging.limit + 1 },
  };
}

/**
 * Finds the place of the last row that a page may scan, whatever conditions the rows meet. Across organizations, each has
 * an equal share of the rows, and the page ends where the first of them has used up its share.
 */
export function selectEnd(
  list: PagedList,
  conditions: readonly Condition[],
  paging: StorePaging & { readonly maxScanned: number },
  dialect: SqlDialect,
): PageStatement {
  const leading = conditions.filter(({ sifts }) => !sifts);
  const { texts, parameters } = placed(list, leading, paging);
  const [row, ofEach] = [{ ...list, columns: [] }, ["organization_id = o.id", ...texts]];
  const last = "1 OFFSET CAST(:page_scanned / (SELECT count(*) FROM organizations) AS INTEGER)";
  return {
    text: isOfOne(list, parameters)
      ? pageOfOne(row, texts, "1 OFFSET :page_scanned")
      : `SELECT ${columnsOf(row, "r.").join(", ")} FROM organizations o
          ${dialect.joinPage(list.table, within(list, ofEach, last))} ${ordered(list, "r.", "1")}`,
    parameters: { ...parameters, page_scanned: paging.maxScanned - 1 },
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

function isOfOne({ byOrganization }: PagedList, parameters: SqlParameters): boolean {
  return !byOrganization || Object.hasOwn(parameters, "organization_id");
}

function pageOfOne(list: PagedList, conditions: readonly string[], limit?: string): string {
  const columns = columnsOf(list).join(", ");
  return `SELECT ${columns} FROM ${list.table} ${within(list, conditions, limit)}`;
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
  const columns = columnsOf(list, "r.").join(", ");
  return `SELECT ${columns} FROM (${leading}) AS o ${rowsOf()} ${ordered(list, "r.")}`;
}

function columnsOf({ columns, order, tie }: PagedList, of = ""): readonly string[] {
  const names = new Set([...columns, order, ...(tie ? [tie.column] : [])]);
  return [...names].map((column) => `${of}${column}`);
}

function within(list: PagedList, conditions: readonly string[], limit = ":page_limit"): string {
  const where = conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`;
  return `${where} ${ordered(list, "", limit)}`;
}

function ordered({ order, direction, tie }: PagedList, of: string, limit = ":page_limit"): string {
  const ties = tie ? `, ${of}${tie.column} ${tie.direction}` : "";
  return `ORDER BY ${of}${order} ${direction}${ties} LIMIT ${limit}`;
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
