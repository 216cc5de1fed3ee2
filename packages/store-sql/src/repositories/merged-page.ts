import {
  type CursorPlace,
  defaultMaxScanned,
  type StorePage,
  type StorePaging,
  yieldToEventLoop,
} from "@tollgate/core/store";
import type { SqlDialect } from "../dialect.ts";
import { readRow } from "../rows/row-reader.ts";
import { query, type ScriptDatabase } from "../script.ts";
import {
  comparePlaces,
  type PagedList,
  type PageSource,
  pageOf,
  placeOf,
  selectFirst,
  selectOfEach,
  triedRows,
  upTo,
} from "../select-page.ts";

/** How many organizations, or rows of them, are read before other work of the process runs. */
const organizationsPerTurn = 500;
const rowsPerTurn = 500;
/** A page of a filtered list scans fewer rows than one of a single organization: finding each costs more. */
const maxScannedOfAll = 5_000;

/** A list as it is read from the organizations in turns. */
interface Reading {
  readonly read: ScriptDatabase["read"];
  readonly dialect: SqlDialect;
  readonly cursor: string | null;
}

/** Where an organization has a row. */
interface Place {
  readonly organizationId: string;
  readonly place: CursorPlace;
}

interface Found extends Place {
  readonly row: unknown;
}

/**
 * Reads a page of a list from all organizations, in turns between which other work runs. Every index begins with the
 * organization, so each page looks for the first row of every organization, and then reads on in those that come first. A row
 * that is written meanwhile may be missing.
 */
export async function mergedPage(
  { read }: Pick<ScriptDatabase, "read">,
  { list, sources }: { readonly list: PagedList; readonly sources: readonly PageSource[] },
  { cursor, limit, maxScanned = defaultMaxScanned }: StorePaging,
  dialect: SqlDialect,
): Promise<StorePage<unknown>> {
  const reading: Reading = { read, dialect, cursor };
  const most = Math.min(maxScanned, maxScannedOfAll);
  for (let scanned = Math.min(triedRows * limit, most); ; scanned = most) {
    const found: Found[] = [];
    let end: CursorPlace | null = null;
    for (const source of sources) {
      const part = await firstRows(reading, source, { wanted: limit + 1, scanned });
      found.push(...part.found);
      end = earlier(list, end, part.end);
    }
    const rows = upToEnd(list, end, firstOf(list, found, found.length))
      .filter((one, at, all) => !isSame(list, one, all[at - 1]))
      .map(({ row }) => row);
    if (end === null || rows.length > limit || scanned === most)
      return pageOf(list, rows.slice(0, limit + 1), limit, (row) => row, end);
  }
}

/** The first rows of a list. Rows may move or be removed while they are read. */
interface FirstRows {
  readonly found: readonly Found[];
  /** Up to this place, none is missing; null if the list has no others. */
  readonly end: CursorPlace | null;
}

async function firstRows(
  reading: Reading,
  source: PageSource,
  { wanted, scanned }: { readonly wanted: number; readonly scanned: number },
): Promise<FirstRows> {
  const leading = source.conditions.filter(({ sifts }) => !sifts);
  if (leading.length === source.conditions.length) return mergeFrom(reading, source, wanted);
  const places: PageSource = {
    list: { ...source.list, columns: ["organization_id"] },
    conditions: leading,
  };
  const passed = await mergeFrom(reading, places, scanned);
  const until = passed.end === null ? [] : [upTo(source.list, passed.end)];
  const sifted = { ...source, conditions: [...source.conditions, ...until] };
  const found: Found[] = [];
  for (const some of groupsOf(namesOf(passed.found), organizationsPerTurn))
    found.push(...(await rowsOfEach(reading, sifted, some, wanted)));
  return { found, end: passed.end };
}

/** The organizations whose first rows come first, at most as many as rows are wanted. */
async function leadersOf(
  { read, dialect, cursor }: Reading,
  { list, conditions }: PageSource,
  limit: number,
): Promise<readonly Place[]> {
  let leaders: readonly Place[] = [];
  for (let after = ""; ; ) {
    const asked = { cursor, after, limit: organizationsPerTurn };
    const { text, parameters } = selectFirst(list, conditions, asked, dialect);
    const rows = (await read(() => query(text, parameters))).map(readRow);
    const found = rows.flatMap((row) => {
      const first = row.jsonOrNull<readonly [order: number, tie?: number]>("first");
      if (first === null) return [];
      const [order, tie = ""] = first;
      return { organizationId: row.text("id"), place: { order, tie: String(tie) } };
    });
    leaders = [...leaders, ...found];
    if (leaders.length > 2 * limit) leaders = firstOf(list, leaders, limit);
    if (rows.length < organizationsPerTurn) return firstOf(list, leaders, limit);
    after = rows.at(-1)?.text("id") ?? "";
    await yieldToEventLoop();
  }
}

/**
 * The first rows of the whole list. Each round reads on in the organizations that may have more of them: about twice as many
 * rows as are wanted, an equal share of each. So at most half as many organizations are left for the next round.
 */
async function mergeFrom(reading: Reading, source: PageSource, limit: number): Promise<FirstRows> {
  const { list } = source;
  const leaders = await leadersOf(reading, source, limit);
  // Other organizations may follow the last one.
  let end = leaders.length < limit ? null : (leaders.at(-1)?.place ?? null);
  let known: readonly Found[] = [];
  let unread = namesOf(leaders);
  for (let share = 0; share < limit && unread.length > 0; ) {
    share = Math.min(limit, Math.ceil((2 * limit) / unread.length));
    const rest = new Set(unread);
    const found = known.filter(({ organizationId }) => !rest.has(organizationId));
    for (const some of groupsOf(unread, Math.ceil(rowsPerTurn / share)))
      found.push(...(await rowsOfEach(reading, source, some, share)));
    known = firstOf(list, found, limit);
    if (known.length === limit) end = earlier(list, end, known.at(-1)?.place ?? null);
    const counts = Map.groupBy(known, ({ organizationId }) => organizationId);
    unread = unread.filter((id) => (counts.get(id)?.length ?? 0) >= share);
  }
  return { found: upToEnd(list, end, known), end };
}

function earlier(
  list: PagedList,
  one: CursorPlace | null,
  other: CursorPlace | null,
): CursorPlace | null {
  if (one === null || other === null) return one ?? other;
  return comparePlaces(list, other, one) < 0 ? other : one;
}

function upToEnd(
  list: PagedList,
  end: CursorPlace | null,
  found: readonly Found[],
): readonly Found[] {
  return found.filter(({ place }) => end === null || comparePlaces(list, place, end) <= 0);
}

/** A row that moved to another table meanwhile is found in both. */
function isSame(list: PagedList, one: Found, other: Found | undefined): boolean {
  if (one.organizationId !== other?.organizationId) return false;
  return comparePlaces(list, one.place, other.place) === 0;
}

async function rowsOfEach(
  reading: Reading,
  { list, conditions, convert = (row) => row }: PageSource,
  organizations: readonly string[],
  limit: number,
): Promise<readonly Found[]> {
  const { read, dialect, cursor } = reading;
  const asked = { cursor, limit, organizations };
  const { text, parameters } = selectOfEach(list, conditions, asked, dialect);
  const rows = await read(() => query(text, parameters));
  await yieldToEventLoop();
  return rows.map((row) => ({
    row: convert(row),
    organizationId: readRow(row).text("organization_id"),
    place: placeOf(list, row),
  }));
}

function firstOf<One extends Place>(
  list: PagedList,
  found: readonly One[],
  limit: number,
): readonly One[] {
  return found.toSorted((a, b) => comparePlaces(list, a.place, b.place)).slice(0, limit);
}

function namesOf(found: readonly Place[]): readonly string[] {
  return [...new Set(found.map(({ organizationId }) => organizationId))];
}

function* groupsOf(names: readonly string[], size: number): Iterable<readonly string[]> {
  for (let at = 0; at < names.length; at += size) yield names.slice(at, at + size);
}
