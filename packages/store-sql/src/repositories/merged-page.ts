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
/** A page of a filtered list passes over fewer rows than one of a single organization: finding each costs more. */
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
  const parts: SourcePart[] = [];
  for (const source of sources) parts.push(await partOf(reading, source, { limit, most }));
  for (let scanned = Math.min(triedRows * limit, most); ; scanned = most) {
    const found: Found[] = [];
    let end: CursorPlace | null = null;
    for (const part of parts) {
      const page = await part.rows(scanned);
      found.push(...page.found);
      if (page.end && (!end || comparePlaces(list, page.end, end) < 0)) end = page.end;
    }
    const rows = firstOf(list, found, limit + 1)
      .filter(({ place }) => end === null || comparePlaces(list, place, end) <= 0)
      .map(({ row }) => row);
    if (end === null || rows.length > limit || scanned === most)
      return pageOf(list, rows, limit, (row) => row, end);
  }
}

/** A source of a page. It finds the first rows, and where it stopped if it may not scan more. */
interface SourcePart {
  rows(
    scanned: number,
  ): Promise<{ readonly found: readonly Found[]; readonly end: CursorPlace | null }>;
}

async function partOf(
  reading: Reading,
  source: PageSource,
  { limit, most }: { readonly limit: number; readonly most: number },
): Promise<SourcePart> {
  const leading = source.conditions.filter(({ sifts }) => !sifts);
  if (leading.length === source.conditions.length) {
    const leaders = await leadersOf(reading, source, limit + 1);
    const found = await mergeFrom(reading, source, leaders, limit + 1);
    return { rows: async () => ({ found, end: null }) };
  }
  const places: PageSource = {
    list: { ...source.list, columns: ["organization_id"] },
    conditions: leading,
  };
  const leaders = await leadersOf(reading, places, most);
  return {
    async rows(scanned) {
      const passed = await mergeFrom(reading, places, leaders, scanned);
      const last = passed.length < scanned ? undefined : passed.at(-1);
      const until = last === undefined ? [] : [upTo(source.list, last.place)];
      const sifted = { ...source, conditions: [...source.conditions, ...until] };
      const found: Found[] = [];
      for (const some of groupsOf(namesOf(passed), organizationsPerTurn))
        found.push(...(await rowsOfEach(reading, sifted, some, limit + 1)));
      return { found, end: last?.place ?? null };
    },
  };
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
async function mergeFrom(
  reading: Reading,
  source: PageSource,
  leaders: readonly Place[],
  limit: number,
): Promise<readonly Found[]> {
  let known: readonly Found[] = [];
  let unread = namesOf(leaders.slice(0, limit));
  for (let share = 0; share < limit && unread.length > 0; ) {
    share = Math.min(limit, Math.ceil((2 * limit) / unread.length));
    const rest = new Set(unread);
    const found = known.filter(({ organizationId }) => !rest.has(organizationId));
    for (const some of groupsOf(unread, Math.ceil(rowsPerTurn / share)))
      found.push(...(await rowsOfEach(reading, source, some, share)));
    known = firstOf(source.list, found, limit);
    const counts = Map.groupBy(known, ({ organizationId }) => organizationId);
    unread = unread.filter((id) => (counts.get(id)?.length ?? 0) >= share);
  }
  return known;
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
